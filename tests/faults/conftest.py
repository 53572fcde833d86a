"""Signals for every test, and a second server for those that stop it."""

import shutil

import pytest
from tests.support import fault_kinds, kinds  # noqa: F401 - registers the kinds
from tests.support.own_cluster import migrated_cluster
from tests.support.signals import new_place
from tests.support.tables import empty_all


@pytest.fixture(autouse=True)
def signals():
    place = new_place()
    yield place
    shutil.rmtree(place)


@pytest.fixture(scope="session")
def own_cluster(django_db_blocker):
    with django_db_blocker.unblock(), migrated_cluster() as own:
        yield own


@pytest.fixture
def own_database(own_cluster, django_db_blocker):
    """The second server, running and empty; this process works on it as well."""
    with django_db_blocker.unblock(), own_cluster.in_use():
        empty_all()
        yield own_cluster
