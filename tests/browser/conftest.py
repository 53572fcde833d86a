"""One browser and one portal for all tests; empty tables and a fresh window for each."""

import os
from pathlib import Path

import pytest
from tests.support.browser import CHROMIUM, chromium, window
from tests.support.portal import PASSWORD, person
from tests.support.portal_server import portal_server

from harvester.ops.models import Role


@pytest.fixture(scope="module")
def browser():
    """Ended with its module: playwright keeps an event loop running in this thread, and others need theirs."""
    if not Path(CHROMIUM).exists():
        miss = pytest.fail if os.environ.get("CI") == "true" else pytest.skip
        miss(f"{CHROMIUM} is missing; install Debian's chromium to see the portal in a real browser")
    with chromium() as running:
        yield running


@pytest.fixture(scope="session")
def portal(cluster):
    with portal_server() as address:
        yield address


@pytest.fixture
def visit(browser, portal, database):
    """A window in which nobody is logged in yet. Whatever its console complains of fails the test."""
    context, opened = window(browser, portal)
    yield opened
    context.close()
    assert opened.unexpected() == []


def _logged_in(visit, username, role):
    person(username, role)
    visit.log_in(username, PASSWORD)
    visit.page.wait_for_url(f"{visit.base}/")
    return visit


@pytest.fixture
def viewer(visit):
    return _logged_in(visit, "vera", Role.VIEWER)


@pytest.fixture
def operator(visit):
    return _logged_in(visit, "otto", Role.OPERATOR)


@pytest.fixture
def admin(visit):
    return _logged_in(visit, "ada", Role.ADMIN)
