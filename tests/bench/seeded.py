"""A database with the offers and prices of other sources in it, made once for a server and copied for every round."""

from collections.abc import Callable

from tests.bench.server import Server

#: The name under which it is kept.
SEEDED = "seeded"


def seed(server: Server, *, offers: int, prices: int, log: Callable[[str], None]) -> None:
    """Make it unless the server keeps it already, and work on a copy."""
    from harvester.ops.database import migrate
    from tests.bench.seeding.fill import fill, has_data
    from tests.bench.seeding.plan import Plan

    if server.keeps(SEEDED):
        # It may have been made before the newest migration.
        server.restore(SEEDED)
        migrate()
        server.forget(SEEDED)
    elif not has_data():
        log(f"making {offers:,} offers of other sources ...")
        fill(Plan(feeds=100, runs=5_000, offers=offers, prices_per_offer=prices))
    server.keep(SEEDED)
