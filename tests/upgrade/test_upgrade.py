"""A database of each released version becomes one of this version, and nothing that was in it is lost.

A dump of a released version never changes. Until the release, `make release-dump VERSION=...` writes it again after
each change of the schema.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import date
from pathlib import Path

import psycopg
import pytest
from django.db import connections
from tests.support.feed_world import OLGA, World, loopback_allowed
from tests.support.sftp_server import PASSWORD, USERNAME, SftpServer, WellBehaved
from tests.support.tables import rows
from tests.support.workers import run_until_idle
from tests.upgrade.example import KEY, LOGIN, MOMENT
from tests.upgrade.make_dump import made
from tests.upgrade.shape import shape
from tests.upgrade.sql_dump import dump

from harvester.catalog.offers import differences
from harvester.engine.embedded import OWNER_ROLE
from harvester.engine.states import JobState
from harvester.feeds import verbs
from harvester.feeds.models import Feed
from harvester.guards import secrets
from harvester.guards.vault import KeyRing
from harvester.ops.database import migrate, pending_migrations
from harvester.ops.models import User
from harvester.runs import decisions as run_decisions
from harvester.runs.models import Run

DUMPS = sorted(Path(__file__).parent.glob("*.sql"))
#: Django adds rows of its own to these when there are new models and migrations.
GROWING = {"django_migrations", "django_content_type", "auth_permission"}
#: The example has no rows in these, because nothing in Harvester writes them, or only what is gone soon.
EMPTY = {"auth_group", "auth_group_permissions", "django_admin_log", "users_groups", "users_user_permissions"}
SCRATCH = ("staged_", "axes_")


@pytest.fixture(scope="module")
def blocker(django_db_blocker) -> Iterator[None]:
    with django_db_blocker.unblock():
        yield


@pytest.fixture(scope="module", params=DUMPS, ids=lambda path: path.stem)
def upgrade(request, cluster, blocker) -> Iterator[tuple[str, dict[str, int]]]:
    """The name of an upgraded database, and how many rows each table had before."""
    with new_database(cluster, "upgraded"):
        with psycopg.connect(**{**cluster.address(OWNER_ROLE), "dbname": "upgraded"}) as connection:
            connection.execute(request.param.read_text())
            connection.execute("SET search_path = public")
            before = counts(connection.cursor())
        with in_database("upgraded"):
            migrate()
        yield "upgraded", before


@pytest.fixture
def copied(upgrade, cluster) -> Iterator[None]:
    """The connections of this process lead to a copy of the upgraded database."""
    with new_database(cluster, "copied", template=upgrade[0]), in_database("copied"):
        yield


@contextmanager
def new_database(cluster, name: str, template: str = "template1") -> Iterator[None]:
    with psycopg.connect(**cluster.address(OWNER_ROLE), autocommit=True) as admin:
        admin.execute(f"CREATE DATABASE {name} TEMPLATE {template}")
        try:
            yield
        finally:
            connections.close_all()
            admin.execute(f"DROP DATABASE {name} WITH (FORCE)")


@contextmanager
def in_database(name: str) -> Iterator[None]:
    """The connections of this process, in every thread, lead to another database of the same server."""
    before = {alias: connections.settings[alias]["NAME"] for alias in ("default", "owner")}
    connections.close_all()
    try:
        for alias in before:
            connections.settings[alias]["NAME"] = name
        yield
    finally:
        connections.close_all()
        for alias, former in before.items():
            connections.settings[alias]["NAME"] = former


def counts(cursor) -> dict[str, int]:
    cursor.execute(
        "SELECT relname FROM pg_class WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'p') "
        "AND NOT relispartition"
    )
    found = {}
    for (table,) in cursor.fetchall():
        cursor.execute(f"SELECT count(*) FROM {table}")
        [found[table]] = cursor.fetchone()
    return found


def owned():
    return connections["owner"].cursor()


def test_an_example_has_rows_in_every_table(upgrade):
    _, before = upgrade
    empty = {table for table, count in before.items() if not count and not table.startswith(SCRATCH)}
    assert empty == EMPTY


def test_an_upgrade_loses_no_row(upgrade):
    name, before = upgrade
    with in_database(name), owned() as cursor:
        after = counts(cursor)
        assert pending_migrations("owner") == []
    assert {table: after.get(table) for table in before if table not in GROWING} == {
        table: count for table, count in before.items() if table not in GROWING
    }
    assert all(after[table] >= before[table] for table in GROWING)


def test_an_upgraded_database_has_the_shape_of_a_new_one(upgrade, cluster):
    with new_database(cluster, "fresh"), in_database("fresh"):
        migrate()
        with owned() as cursor:
            new = shape(cursor)
    with in_database(upgrade[0]), owned() as cursor:
        assert shape(cursor) ^ new == set()


def test_offers_still_equal_what_the_prices_say(upgrade):
    with in_database(upgrade[0]):
        assert rows("SELECT count(*) > 0 FROM offers") == [(True,)]
        assert differences() == []
        assert set(rows("SELECT DISTINCT state FROM jobs")) == {(state.value,) for state in JobState}


def test_people_and_credentials_are_still_known(upgrade):
    with in_database(upgrade[0]):
        olga = User.objects.get(username="olga")
        assert (olga.role, olga.check_password(LOGIN)) == ("admin", True)
        feed = Feed.objects.get(source__name="Kestrel by Impact")
        assert secrets.open_document("feed", feed.id, ring=KeyRing.parse(KEY)) == {"password": PASSWORD}


def test_a_held_run_can_be_approved_after_an_upgrade(copied):
    held = Run.objects.get(kind="AFFILIATE_FEED", outcome="HELD")
    run_decisions.request_approval(OLGA, held.id)
    run_until_idle(threads=1)
    held.refresh_from_db()
    assert held.outcome == "APPROVED"
    assert rows("SELECT count(*) > 0 FROM prices WHERE run_no = %s", held.no) == [(True,)]
    assert differences() == []


def test_a_feed_can_run_after_an_upgrade(copied, tmp_path):
    with loopback_allowed(), SftpServer(tmp_path, behaviour=WellBehaved) as server:
        shop = known(server, "Kestrel by Impact")
        shop.put(*range(100, 142))
        run = shop.run()
        assert (run.outcome, run.error) == ("PROMOTED", None)
        assert Run.objects.filter(kind="AFFILIATE_FEED", outcome="HELD").count() == 0
        assert rows("SELECT count(*) FROM visible_offers WHERE source_id = %s", shop.source.id) == [(42,)]
        assert differences() == []


def known(server: SftpServer, name: str) -> World:
    """The partner of a feed that is there already, now with this server."""
    world = World.__new__(World)
    world.server, world.name = server, name
    world.feed = Feed.objects.select_related("source").get(source__name=name)
    world.source = world.feed.source
    world.change(port=server.port, path="/Shop/catalog.txt")
    verbs.change_credentials(OLGA, world.feed.id, username=USERNAME, password=PASSWORD, replace=True)
    verbs.approve_host_key(OLGA, world.feed.id, str(server.host_key))
    return world


@pytest.mark.slow
def test_a_dump_of_this_version_can_be_made_and_loaded(cluster, blocker):
    with new_database(cluster, "example"), in_database("example"), loopback_allowed():
        text = made("9.9.9")
        with owned() as cursor:
            same = shape(cursor)
    with new_database(cluster, "loaded"), in_database("loaded"):
        with psycopg.connect(**{**cluster.address(OWNER_ROLE), "dbname": "loaded"}) as connection:
            connection.execute(text)
        with owned() as cursor:
            assert text.endswith(dump(cursor, date.fromisoformat(MOMENT[:10])))
        migrate()
        with owned() as cursor:
            assert shape(cursor) == same
