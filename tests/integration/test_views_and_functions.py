"""The views and functions of the database are those of one current file for each app."""

import hashlib
import importlib
import re
from pathlib import Path

import psycopg
import pytest
from django.db import connections, transaction
from django.db.migrations import RunSQL
from django.db.migrations.executor import MigrationExecutor

import harvester
from harvester.engine.embedded import OWNER_ROLE
from harvester.ops.database import migrate

FILES = {
    path.parents[1].name: path.read_text() for path in Path(harvester.__file__).parent.rglob("views_and_functions.sql")
}
#: The only migration that applies each file, and a hash of what the file said then. A file that changes needs a new
#: migration, because databases that exist have applied the last one already, and the earlier one loses its operation,
#: because the file may now need what later migrations make. While the migration is on your branch only, the hash is all
#: that changes here.
APPLIED = {
    "catalog": ("0016_views_and_functions", "b97b1fc2ee8f2410"),
    "engine": ("0004_views_and_functions", "7945d99abd2811b1"),
}

_DEFINED = """
SELECT oid::regclass::text, pg_get_viewdef(oid) FROM pg_class
WHERE relnamespace = 'public'::regnamespace AND relkind IN ('v', 'm')
UNION ALL
SELECT proname, CASE prokind WHEN 'a' THEN (SELECT a::text FROM pg_aggregate a WHERE aggfnoid = oid)
                             ELSE pg_get_functiondef(oid) END
FROM pg_proc WHERE pronamespace = 'public'::regnamespace
ORDER BY 1
"""
_DROP = """
DO $$ DECLARE name text; BEGIN
    FOR name IN SELECT relname FROM pg_class WHERE relnamespace = 'public'::regnamespace AND relkind IN ('v', 'm')
    LOOP EXECUTE format('DROP VIEW IF EXISTS %s CASCADE', name); END LOOP;
    FOR name IN SELECT oid::regprocedure FROM pg_proc WHERE pronamespace = 'public'::regnamespace
    LOOP EXECUTE format('DROP ROUTINE %s CASCADE', name); END LOOP;
END $$
"""


@pytest.fixture
def owner(cluster, django_db_blocker):
    """A cursor with the owner's rights; all that it does is rolled back."""
    with django_db_blocker.unblock(), transaction.atomic("owner"):
        with connections["owner"].cursor() as cursor:
            yield cursor
        transaction.set_rollback(True, "owner")


@pytest.fixture
def current(cluster):
    with psycopg.connect(**cluster.address(OWNER_ROLE)) as connection:
        return definitions(connection.cursor())


@pytest.fixture
def older(cluster, monkeypatch, django_db_blocker):
    """The owner's connection leads to a second database, as it was before the migrations that apply the files."""
    database = connections["owner"]
    with (
        psycopg.connect(**cluster.address(OWNER_ROLE), autocommit=True) as admin,
        django_db_blocker.unblock(),
        monkeypatch.context() as patch,
    ):
        admin.execute("CREATE DATABASE older")
        database.close()
        patch.setitem(database.settings_dict, "NAME", "older")
        try:
            MigrationExecutor(database).migrate(
                [before for app, (name, _) in APPLIED.items() for before in migration(app, name).dependencies]
            )
            yield database
        finally:
            database.close()
            admin.execute("DROP DATABASE older WITH (FORCE)")


def definitions(cursor):
    cursor.execute(_DEFINED)
    return cursor.fetchall()


def names(text):
    return re.findall(r"^CREATE OR REPLACE (?:VIEW|FUNCTION|AGGREGATE) (\w+)", text, re.MULTILINE)


def digest(text):
    """A hash of the statements without comments and layout, which need no migration."""
    statements = " ".join(re.sub(r"--.*", "", text).split())
    return hashlib.sha256(statements.encode()).hexdigest()[:16]


def migration(app, name):
    return importlib.import_module(f"harvester.{app}.migrations.{name}").Migration


def applying(app):
    """Return the names of the migrations of an app that apply its file, in their order."""
    folder = Path(harvester.__file__).parent / app / "migrations"
    return [
        path.stem
        for path in sorted(folder.glob("0*.py"))
        if any(isinstance(step, RunSQL) and step.sql == FILES[app] for step in migration(app, path.stem).operations)
    ]


def test_every_view_and_function_is_in_exactly_one_file(owner):
    assert sorted(name for text in FILES.values() for name in names(text)) == [name for name, _ in definitions(owner)]


def test_the_database_has_what_the_files_make_from_nothing(owner):
    before = definitions(owner)
    owner.execute(_DROP)
    assert not definitions(owner)
    for text in FILES.values():
        owner.execute(text)
    assert definitions(owner) == before


@pytest.mark.parametrize("app", FILES)
def test_a_file_that_changed_is_applied_by_one_new_migration(app):
    name, hashed = APPLIED[app]
    assert applying(app) == [name]
    assert digest(FILES[app]) == hashed


def test_an_older_database_gets_what_the_files_say(current, older):
    with older.cursor() as cursor:
        cursor.execute("CREATE OR REPLACE VIEW visible_offers AS SELECT * FROM active_offers")
        cursor.execute("ALTER FUNCTION make_partitions SECURITY INVOKER")
        assert definitions(cursor) != current
        migrate()
        assert definitions(cursor) == current
