"""The views and functions of the database are those of the current files of each app."""

import hashlib
import importlib
import re
from pathlib import Path

import pytest
from django.db import connections, transaction
from django.db.migrations import RunSQL

import harvester

SOURCE = Path(harvester.__file__).parent
#: Functions that tables and triggers need. The first migration applies them before there is any table.
FIRST = "functions"
#: By app and name.
FILES = {(path.parents[1].name, path.stem): path.read_text() for path in sorted(SOURCE.glob("*/sql/*.sql"))}
#: The newest migration that applies each file, and a hash of what the file said then. A file that changes needs a new
#: migration, because databases that exist have applied the last one already. While the migration is on your branch
#: only, or before the first release, the hash is all that changes here.
APPLIED = {
    ("runs", "functions"): ("0002_parts_by_day", "dbbe29299677c397"),
    ("catalog", "views_and_functions"): ("0003_pages", "0000fa7db96ab964"),
    ("engine", "functions"): ("0001_initial", "7945d99abd2811b1"),
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


def applying(app, text):
    """Return the names of the migrations of an app that apply a text, in their order."""
    return [
        path.stem
        for path in sorted((SOURCE / app / "migrations").glob("0*.py"))
        if any(isinstance(step, RunSQL) and step.sql == text for step in migration(app, path.stem).operations)
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


def test_functions_that_tables_need_can_be_made_before_any_table(owner):
    before = definitions(owner)
    owner.execute(_DROP)
    owner.execute("CREATE SCHEMA without_tables; SET LOCAL search_path = without_tables")
    for (_, name), text in FILES.items():
        if name == FIRST:
            owner.execute(text)
    owner.execute("SELECT proname FROM pg_proc WHERE pronamespace = 'without_tables'::regnamespace")
    made = {name for (name,) in owner.fetchall()}
    needed = {"keep_run_identity", "make_partitions", "refuse_change"}
    assert needed <= made <= {name for name, _ in before}


@pytest.mark.parametrize("file", FILES, ids="/".join)
def test_a_file_that_changed_is_applied_by_one_new_migration(file):
    app, kind = file
    name, hashed = APPLIED[file]
    assert applying(app, FILES[file]) == sorted({name, "0001_initial"} if kind == FIRST else {name})
    assert digest(FILES[file]) == hashed


def test_an_older_database_gets_what_the_files_say(owner):
    """As a newer migration would apply them. tests/upgrade does it with every released version."""
    current = definitions(owner)
    owner.execute("CREATE OR REPLACE VIEW visible_offers AS SELECT * FROM active_offers")
    owner.execute("ALTER FUNCTION make_partitions SECURITY INVOKER")
    owner.execute("CREATE OR REPLACE FUNCTION keep_run_identity() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN END'")
    assert definitions(owner) != current
    for text in FILES.values():
        owner.execute(text)
    assert definitions(owner) == current
