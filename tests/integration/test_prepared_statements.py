"""Statements that run for every page are prepared once per session and otherwise behave like any others."""

import pytest
from django.db import DataError, connection, transaction

from harvester.guards.prepared import prepared_cursor

pytestmark = pytest.mark.usefixtures("database")
STATEMENT = "SELECT 12 / %(number)s::int"


def divided(number: int) -> int:
    with prepared_cursor() as cursor:
        cursor.execute(STATEMENT, {"number": number})
        return cursor.fetchone()[0]


def prepared() -> list[str]:
    with connection.cursor() as cursor:
        cursor.execute("SELECT statement FROM pg_prepared_statements WHERE statement LIKE 'SELECT 12 /%'")
        return [statement for (statement,) in cursor.fetchall()]


def test_a_statement_is_prepared_once_for_all_its_values():
    assert [divided(number) for number in (2, 3, 4)] == [6, 4, 3]
    assert prepared() == ["SELECT 12 / $1::int"]


def test_a_failed_statement_raises_the_errors_of_django_and_can_be_repeated():
    for _ in range(2):
        with pytest.raises(DataError, match="division by zero"), transaction.atomic():
            divided(0)
        assert divided(2) == 6


def test_statements_belong_to_the_open_transaction_of_the_session():
    with prepared_cursor() as cursor:
        cursor.execute("SELECT set_config('application_name', %(name)s, false)", {"name": "before"})
        with transaction.atomic():
            cursor.execute("SELECT set_config('application_name', %(name)s, false)", {"name": "inside"})
            transaction.set_rollback(True)
    with connection.cursor() as cursor:
        cursor.execute("SHOW application_name")
        assert cursor.fetchone() == ("before",)
