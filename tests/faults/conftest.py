"""Signals for every test, and a second server for those that stop it."""

import shutil

import pytest
from django.db import connections
from tests.support import fault_kinds, kinds, pace_kinds  # noqa: F401 - registers the kinds
from tests.support.feed_twins import Twins
from tests.support.feed_world import loopback_allowed
from tests.support.own_cluster import migrated_cluster
from tests.support.sftp_server import SftpServer
from tests.support.signals import new_place
from tests.support.tables import empty_all


@pytest.fixture(autouse=True)
def signals():
    place = new_place()
    yield place
    shutil.rmtree(place)


@pytest.fixture(scope="module")
def standing_twins(cluster, django_db_blocker, tmp_path_factory):
    with django_db_blocker.unblock(), loopback_allowed(), SftpServer(tmp_path_factory.mktemp("partner")) as server:
        empty_all()
        yield Twins(server)
        # Tests that roll back what they do, and empty nothing, may come next.
        empty_all()
        connections.close_all()


@pytest.fixture
def twins(standing_twins, django_db_blocker):
    """Two feeds of one partner that have had the same runs; the tests of a file go on with the same two."""
    with django_db_blocker.unblock():
        if standing_twins.edition == 0 or standing_twins.differences():
            empty_all()
            standing_twins.begin_again()
        yield standing_twins
        connections.close_all()


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
