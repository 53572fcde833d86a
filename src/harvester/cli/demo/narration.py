"""How the story is told. Needs Django."""

import shlex
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from rich.console import RenderableType
from rich.text import Text

from harvester.catalog.states import RunOutcome
from harvester.cli.demo.acts import Played
from harvester.cli.demo.catalog import LEAVER
from harvester.cli.demo.home import USERNAME, DemoHome
from harvester.cli.demo.partner import HOST, Partner
from harvester.cli.demo.shop import HARBOUR_STREET, KESTREL
from harvester.cli.output import count_text, pairs, stacked, table
from harvester.feeds.models import Feed, FeedRun
from harvester.feeds.partner_connection import approved_keys

_OUTCOMES = {RunOutcome.PROMOTED: "green", RunOutcome.HELD: "bold yellow"}


def beginning(home: DemoHome, partner: Partner, feeds: Mapping[str, Feed]) -> RenderableType:
    feed = feeds[KESTREL.name]
    fingerprint = approved_keys(feed)[0].fingerprint
    rows = [
        ("database", f"embedded PostgreSQL in {home.path}"),
        ("data", _earlier(feed)),
        ("log", home.log_file),
        *(("shop", f"{shop.retailer}, invented; its feed is {shop.name}") for shop in (KESTREL, HARBOUR_STREET)),
        ("partner", f"SFTP server on {HOST}:{partner.port}, serving {partner.directory}"),
        ("host key", f"{fingerprint}, approved"),
    ]
    return stacked(pairs(rows), Text("Starting portal, scheduler and two workers ..."))


def _earlier(feed: Feed) -> str:
    runs = FeedRun.objects.count()
    if not runs:
        return "new"
    held = feed.source.held_run_no
    waits = f"; run {held}, which waits for a decision, is overtaken by the next good one" if held else ""
    return f"of an earlier demo, with {runs} runs{waits}"


def event_line(sentence: str) -> RenderableType:
    return Text.assemble(("  ok  ", "green"), sentence)


def came_out(played: Played) -> str:
    """What became of an act, in a line."""
    run = f"run {played.run.no}, {played.act.shop.name}: {played.act.title}"
    if played.act.wanted == RunOutcome.HELD:
        return f"{run}; held, consumers see what they saw before"
    written = f"{played.figures.prices_written:,} prices written"
    if played.act.worker_dies:
        return f"{run}; rescued and finished by a living worker, {written}"
    return f"{run}; {written}, consumers see {len(played.after):,} products"


def summary(story: Sequence[Played]) -> RenderableType:
    rows = [
        (
            played.run.no,
            played.act.shop.name,
            Text(str(played.run.outcome), style=_OUTCOMES[played.act.wanted]),
            count_text(played.figures.products_upserted),
            count_text(played.figures.products_new),
            count_text(played.figures.products_back),
            count_text(played.figures.products_missing),
            count_text(played.figures.prices_written or 0),
            count_text(played.held.changes or None),
            count_text(len(played.after)),
        )
        for played in story
    ]
    columns = ("run", "feed", "outcome", "products", "new", "back", "missing", "prices", "held", "shown")
    return stacked(
        Text(""),
        table(columns, rows, title="What came in", right=("run", *columns[3:])),
        _missing(next(played for played in story if played.act.worker_dies)),
    )


def _missing(played: Played) -> RenderableType:
    hours = played.run.source.expiry_hours if played.run.source else None
    return Text(
        f"{LEAVER.title!r} is not in the file of run {played.run.no}; it goes when it is not seen for {hours} h."
    )


def waiting(played: Played) -> RenderableType:
    """What a held run would do, and what is true until somebody decides."""
    held = played.held
    return stacked(
        Text(f"Run {played.run.no} waits for a decision. {played.reason}", style="bold"),
        Text(
            f"Approved, it would change {held.prices:,} prices and let {held.missing:,} products expire. "
            f"Until then consumers see all {len(played.after):,} products at the prices of the run before."
        ),
    )


def ending(home: DemoHome, portal: str, held: int, *, workers_stay: bool) -> RenderableType:
    program = _program()
    rows = [
        ("portal", portal),
        ("login", _login(home)),
        ("terminal", f"export HARVESTER_HOME={shlex.quote(str(home.path))}"),
        ("approve", f"{program} feed approve {held} --wait"),
        ("reject", f'{program} feed reject {held} --wait --reason "one department only"'),
        ("look", f"{program} feed runs {KESTREL.name}"),
        ("", f"{program} alerts list"),
    ]
    if not workers_stay:
        rows.insert(3, ("start again", f"{program} up"))
    return pairs(rows)


def _login(home: DemoHome) -> str:
    """The password is shown when it is made, and afterwards only where it is kept."""
    if home.is_new:
        return f"{USERNAME} / {home.password}   (kept in {home.login_file})"
    return f"{USERNAME}, with the password in {home.login_file}"


def _program() -> str:
    """As it was typed, because the environment's bin directory may not be in the search path."""
    typed = Path(sys.argv[0])
    return str(typed) if typed.name == "harvester" else "harvester"
