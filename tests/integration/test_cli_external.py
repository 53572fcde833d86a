"""The command line on a PostgreSQL that somebody else runs, here a second database of this run's server."""

from urllib.parse import quote

import psycopg
import pytest
from django.conf import settings
from django.db import connections
from tests.support.command import harvester

from harvester.cli.exit_codes import failure_of
from harvester.guards.vault import generate_key

KEY = generate_key()


@pytest.fixture(scope="module")
def external(cluster, django_db_blocker):
    """An empty database, and the environment of a process that uses it."""
    with django_db_blocker.unblock(), connections["owner"].cursor() as cursor:
        cursor.execute("CREATE DATABASE external")
        cursor.execute("CREATE ROLE external_service LOGIN")
        cursor.execute("CREATE DATABASE restored OWNER external_service")
    host = quote(settings.DATABASES["default"]["HOST"])
    url = f"postgresql://harvester_owner@/external?host={host}&application_name=external"
    yield {"HARVESTER_DATABASE_URL": url, "CREDENTIAL_ENCRYPTION_KEY_B64": KEY, "HARVESTER_HOME": None}
    with django_db_blocker.unblock(), connections["owner"].cursor() as cursor:
        cursor.execute("DROP DATABASE external WITH (FORCE)")
        cursor.execute("DROP DATABASE restored WITH (FORCE)")
        cursor.execute("DROP ROLE external_service")


def test_tables_are_brought_in_by_migrate_and_by_nothing_else(external):
    for command in (["jobs", "list"], ["worker", "--once"]):
        ran = harvester(*command, **external)
        assert ran.code == 78
        assert "harvester migrate" in ran.err
    assert harvester("migrate", **external).code == 0
    assert harvester("jobs", "list", "--json", **external).json == {"jobs": []}


def test_doctor_knows_the_address_without_the_password_and_advises_two_logins(external):
    url = external["HARVESTER_DATABASE_URL"].replace("owner@", "owner:hunter2hunter2@")
    assert harvester("migrate", **external).code == 0
    ran = harvester("doctor", "--json", **{**external, "HARVESTER_DATABASE_URL": url})
    found = {finding["check"]: finding for finding in ran.json["checks"]}
    assert "external" in found["database"]["finding"]
    assert "hunter2" not in ran.out
    assert found["role"]["state"] == "warn"
    assert "HARVESTER_OWNER_DATABASE_URL" in found["role"]["advice"]
    assert found["proxy"]["state"] == "ok"


def test_migrate_names_the_right_that_a_login_lacks(external):
    url = external["HARVESTER_DATABASE_URL"].replace("harvester_owner@/external", "external_service@/restored")
    ran = harvester("migrate", **{**external, "HARVESTER_DATABASE_URL": url})
    assert ran.code == 78
    assert "GRANT harvester_app TO" in ran.err
    assert "is missing" not in ran.err


def test_a_login_without_the_application_s_rights_gets_an_error_that_says_so(external):
    assert harvester("migrate", **external).code == 0
    url = external["HARVESTER_DATABASE_URL"]
    service = {
        **external,
        "HARVESTER_OWNER_DATABASE_URL": url,
        "HARVESTER_DATABASE_URL": url.replace("harvester_owner@", "external_service@"),
    }
    ran = harvester("jobs", "list", **service)
    assert ran.code == 78
    assert "member of harvester_app" in ran.err


def test_a_server_that_was_never_migrated_asks_for_it():
    error = psycopg.OperationalError('connection failed: FATAL:  role "harvester_app" does not exist')
    assert failure_of(error).code == "NOT_MIGRATED"
