"""The tables are what the models say, and facts cannot be changed by anybody."""

import os
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import psycopg
import pytest
from django.apps import apps
from django.core.management import call_command
from django.db import connections, transaction
from django.db.migrations.loader import MigrationLoader
from tests.support.tables import rows

from harvester.engine.connections import connect
from harvester.engine.enqueue import enqueue
from harvester.engine.states import ENDED, OPEN, JobState
from harvester.kernel.actor import system
from harvester.ops import audit
from harvester.pipeline.staging import STAGING_LOCK

FACTS = ("job_events", "audit_events", "prices")
REFUSED = psycopg.errors.InsufficientPrivilege


@pytest.fixture
def facts(database):
    """One row in each table of facts."""
    with transaction.atomic():
        enqueue("test.note")
        audit.record(system("test"), "TESTED", "thing", 1)


@pytest.fixture
def owner(facts):
    """A session of the role that owns the tables."""
    parameters = connections["owner"].get_connection_params()
    for name in ("cursor_factory", "context", "prepare_threshold"):
        parameters.pop(name, None)
    with psycopg.connect(**parameters, autocommit=True) as session:
        yield session


def partitions(table: str) -> list[str]:
    found = rows("SELECT inhrelid::regclass::text FROM pg_inherits WHERE inhparent = %s::regclass", table)
    return sorted(name for (name,) in found)


def with_partitions() -> list[str]:
    return [name for table in FACTS for name in (table, *partitions(table))]


CHANGES = ("UPDATE {} SET {time} = {time}", "DELETE FROM {}", "TRUNCATE {}")


def aimed(change, name):
    return change.format(name, time="observed_at" if name.startswith("prices") else "at")


@pytest.mark.parametrize("change", CHANGES)
def test_the_application_cannot_change_facts(facts, change):
    with connect("test") as session:
        for name in with_partitions():
            with pytest.raises(REFUSED):
                session.execute(aimed(change, name))


@pytest.mark.parametrize("change", CHANGES)
def test_not_even_the_owner_can_change_facts(owner, change):
    for name in with_partitions():
        [count] = owner.execute(f"SELECT count(*) FROM {name}").fetchone()
        if count or "TRUNCATE" in change:
            with pytest.raises(REFUSED):
                owner.execute(aimed(change, name))


def test_the_application_appends_facts_to_the_table_and_not_to_its_months(facts):
    with connect("test") as session:
        session.execute("INSERT INTO job_events (job_id, state, attempt) VALUES (1, 'failed', 1)")
        for name in (partition for table in FACTS for partition in partitions(table)):
            with pytest.raises(REFUSED):
                session.execute(f"INSERT INTO {name} SELECT * FROM {name}")


@pytest.mark.parametrize(
    "statement",
    [
        "DROP TABLE {}",
        "ALTER TABLE {} DISABLE TRIGGER ALL",
        "DROP TRIGGER refuse_change ON {}",
        "ALTER TABLE {} ADD COLUMN x int",
        "CREATE TABLE loophole (LIKE {})",
        "SET session_replication_role = replica",
        "CREATE OR REPLACE FUNCTION refuse_change() RETURNS trigger LANGUAGE sql AS 'SELECT 1'",
    ],
)
def test_the_application_cannot_open_a_way_around(facts, statement):
    with connect("test") as session, pytest.raises((REFUSED, psycopg.errors.InvalidFunctionDefinition)):
        session.execute(statement.format("audit_events"))


# Sixteen slots have tables; of any other number there is only what the application makes.
@pytest.mark.parametrize("slot", [3, 99])
def test_no_trigger_of_the_application_runs_with_the_rights_of_the_owner(database, slot):
    with connect("test") as session:
        session.execute("CREATE TEMPORARY TABLE ran_as (name text)")
        session.execute(
            "CREATE FUNCTION pg_temp.note() RETURNS trigger LANGUAGE plpgsql AS "
            "$$ BEGIN INSERT INTO pg_temp.ran_as VALUES (current_user); RETURN NULL; END $$"
        )
        for table in ("rows", "changes", "contents"):
            session.execute(f"CREATE TEMPORARY TABLE staged_{table}_{slot} (x int)")
            session.execute(
                f"CREATE TRIGGER note BEFORE TRUNCATE ON staged_{table}_{slot} EXECUTE FUNCTION pg_temp.note()"
            )
        with suppress(psycopg.errors.UndefinedTable):
            session.execute("SELECT clear_staging(%s)", [slot])
        assert session.execute("SELECT name FROM ran_as").fetchall() == []


@pytest.mark.parametrize("table", ["audit_events", "job_events"])
@pytest.mark.parametrize(("column", "value"), [("id", "1"), ("at", "'infinity'"), ("at", "'2020-01-01'")])
def test_the_application_chooses_neither_number_nor_time_of_an_event(facts, table, column, value):
    others = {
        "audit_events": (
            "actor_kind, actor_id, actor_name, verb, object_type, object_id",
            "'system', '', '', '', '', ''",
        ),
        "job_events": ("job_id, state, attempt", "1, 'failed', 1"),
    }
    names, values = others[table]
    with connect("test") as session:
        with pytest.raises(REFUSED):
            session.execute(f"INSERT INTO {table} ({names}, {column}) VALUES ({values}, {value})")
        with pytest.raises(REFUSED), session.cursor().copy(f"COPY {table} ({names}, {column}) FROM STDIN"):
            pass
        with pytest.raises(REFUSED):
            session.execute(f"SELECT setval('{table}_id', 1)")
        [made] = session.execute(
            f"INSERT INTO {table} ({names}) VALUES ({values}) "
            "RETURNING at BETWEEN statement_timestamp() AND clock_timestamp()"
        ).fetchone()
    assert made


def test_a_staging_slot_in_use_is_not_cleared_for_another_session(database):
    with connect("holder") as holder, connect("other") as other:
        holder.execute("SELECT pg_advisory_lock(%s, 5)", [STAGING_LOCK])
        with pytest.raises(psycopg.errors.ObjectInUse, match="staging slot 5 is in use"):
            other.execute("SELECT clear_staging(5)")
        holder.execute("SELECT clear_staging(5)")
        holder.execute("SELECT pg_advisory_unlock_all()")
        other.execute("SELECT clear_staging(5)")


def test_only_the_application_may_call_functions_with_the_rights_of_the_owner(database):
    callers = rows(
        "SELECT p.proname::text, coalesce(nullif(a.grantee, 0)::regrole::text, 'PUBLIC') FROM pg_proc p "
        "CROSS JOIN aclexplode(coalesce(p.proacl, acldefault('f', p.proowner))) a "
        "WHERE p.prosecdef AND p.pronamespace = 'public'::regnamespace AND a.grantee <> p.proowner ORDER BY 1"
    )
    names = ("analyse_staging", "clear_staging", "drop_old_job_events", "drop_old_part_days", "make_part_days")
    names += ("make_partitions",)
    assert callers == [(name, "harvester_app") for name in names]


def test_months_are_made_of_no_table_that_a_session_made(database):
    with connect("test") as session:
        session.execute("CREATE TEMPORARY TABLE mine (at timestamptz) PARTITION BY RANGE (at)")
        with pytest.raises(psycopg.errors.RaiseException, match="is not partitioned"):
            session.execute("SELECT make_partitions('mine', 1)")


def test_functions_with_the_rights_of_the_owner_look_into_temporary_tables_last(database):
    loose = rows(
        "SELECT proname, proconfig FROM pg_proc WHERE prosecdef AND pronamespace = 'public'::regnamespace "
        "AND NOT EXISTS (SELECT FROM unnest(proconfig) c WHERE c ~ '^search_path=.*, pg_temp$')"
    )
    assert loose == []


def test_a_month_that_is_made_later_is_guarded_like_the_others(owner):
    [name] = owner.execute("SELECT 'audit_events_' || to_char(now() + interval '4 months', 'YYYYMM')").fetchone()
    try:
        assert owner.execute("SELECT make_partitions('audit_events', 4)").fetchone() == (1,)
        owner.execute(
            "INSERT INTO audit_events (at, actor_kind, actor_id, actor_name, verb, object_type, object_id) "
            "VALUES (now() + interval '4 months', 'system', 'x', 'x', 'TESTED', 'thing', '1')"
        )
        for change in CHANGES:
            with connect("test") as session, pytest.raises(REFUSED):
                session.execute(aimed(change, name))
            with pytest.raises(REFUSED):
                owner.execute(aimed(change, name))
    finally:
        owner.execute(f"DROP TABLE IF EXISTS {name}")


def test_every_table_with_facts_carries_the_guard(database):
    guarded = rows(
        "SELECT DISTINCT c.relname FROM pg_trigger t JOIN pg_class c ON c.oid = t.tgrelid "
        "WHERE t.tgfoid = 'refuse_change'::regproc AND NOT c.relispartition ORDER BY 1"
    )
    assert [name for (name,) in guarded] == sorted(FACTS)


def test_the_application_may_do_what_it_must_with_every_other_table(database):
    missing = rows(
        "SELECT c.relname FROM pg_class c WHERE c.relnamespace = 'public'::regnamespace AND c.relkind IN ('r', 'p') "
        "AND NOT c.relispartition AND NOT has_table_privilege(c.oid, 'SELECT') "
    )
    assert missing == []


def test_no_model_has_changed_without_a_migration(database):
    call_command("makemigrations", check=True, dry_run=True, verbosity=0)


@pytest.mark.parametrize("model", [model for model in apps.get_models() if not model._meta.managed], ids=str)
def test_a_model_written_by_hand_has_the_columns_of_its_table(database, model):
    columns = rows(
        "SELECT attname, NOT attnotnull FROM pg_attribute "
        "WHERE attrelid = %s::regclass AND attnum > 0 AND NOT attisdropped",
        model._meta.db_table,
    )
    declared = [(field.column, field.null) for field in model._meta.local_fields if field.column]
    assert sorted(declared) == sorted(columns)


def test_migrations_know_the_fields_of_models_written_by_hand():
    """`makemigrations` compares only the fields of models that Django manages."""
    migrated = MigrationLoader(None).project_state().models
    for model in (model for model in apps.get_models() if not model._meta.managed):
        state = migrated[model._meta.app_label, model._meta.model_name]
        declared = {field.name: shape(field) for field in model._meta.local_fields}
        assert {name: shape(field) for name, field in state.fields.items()} == declared, model


def shape(field):
    refers_to = field.remote_field and field.remote_field.model
    refers_to = refers_to if isinstance(refers_to, str) else refers_to and refers_to._meta.label
    return type(field), field.null, field.primary_key, field.unique, refers_to and refers_to.lower()


def test_every_state_is_on_the_diagram(database):
    [(check,)] = rows("SELECT pg_get_constraintdef(oid) FROM pg_constraint WHERE conname = 'jobs_state'")
    assert all(f"'{state}'" in check for state in JobState)
    assert set(OPEN) | set(ENDED) == set(JobState)


def test_heartbeats_touch_no_index(database):
    """A beat that touches an index is written twice and cleaned up twice."""
    indexed = rows(
        "SELECT DISTINCT a.attname FROM pg_index i JOIN pg_attribute a ON a.attrelid = i.indrelid "
        "AND a.attnum = ANY (i.indkey) WHERE i.indrelid = 'jobs'::regclass"
    )
    assert not {"heartbeat_at", "progress"} & {name for (name,) in indexed}


def test_imports_go_down_only():
    """In a process of its own, because it configures logging again."""
    root = Path(__file__).parents[2]
    check = "import sys; from importlinter.cli import lint_imports; sys.exit(lint_imports(no_cache=True))"
    env = {**os.environ, "PYTHONPATH": str(root / "src")}
    done = subprocess.run([sys.executable, "-c", check], cwd=root, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
