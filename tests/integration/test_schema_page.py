"""`docs/schema.md` says what the database has."""

import importlib.util
from pathlib import Path

import pytest
from django.db import connection
from tests.support.tables import rows

ROOT = Path(__file__).parents[2]

pytestmark = pytest.mark.usefixtures("database")


@pytest.fixture
def tool():
    found = importlib.util.spec_from_file_location("schema_tool", ROOT / "tools" / "schema.py")
    module = importlib.util.module_from_spec(found)
    found.loader.exec_module(module)
    return module


def test_the_page_of_the_schema_is_up_to_date(tool):
    with connection.cursor() as cursor:
        assert tool.PAGE.read_text() == tool.markdown(cursor), "run make schema"


def test_every_table_and_view_says_what_it_is_for():
    silent = rows(
        "SELECT relname FROM pg_class WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'p', 'v') "
        "AND NOT relispartition AND obj_description(oid) IS NULL AND relname !~ '^(auth|axes|django|users|test)_'"
    )
    assert silent == []
