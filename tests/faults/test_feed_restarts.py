"""The database is restarted in the middle of a run: the run goes on, and ends like any other."""

import pytest
from tests.support.feed_points import watched
from tests.support.feed_twins import Twins
from tests.support.feed_worker import wait_at_point
from tests.support.feed_world import loopback_allowed
from tests.support.jobs import change
from tests.support.outcomes import ENDED, wait_until, wait_until_ended
from tests.support.sftp_server import SftpServer
from tests.support.signals import say
from tests.support.tables import empty_all
from tests.support.workers import worker_thread

#: How the server ends, and where the run is then.
RESTARTS = {
    "while the run downloads": ("fast", ["STEP _download"]),
    "inside the copy to staging": ("immediate", ["COPY staged_rows"]),
    "while it matches": ("fast", ["WITH matched"]),
    "inside the promotion": ("immediate", ["STEP promote", "UPDATE offers"]),
    "before the commit of the promotion": ("crash", ["STEP promote", "COMMIT"]),
    "after the commit of the promotion": ("fast", ["STEP promote", "COMMITTED"]),
}


@pytest.fixture(scope="module")
def restarted_twins(own_cluster, django_db_blocker, tmp_path_factory):
    """Twins whose database is the second server."""
    root = tmp_path_factory.mktemp("partner")
    with django_db_blocker.unblock(), own_cluster.in_use(), loopback_allowed(), SftpServer(root) as server:
        empty_all()
        twins = Twins(server)
        twins.begin_again()
        yield twins


@pytest.mark.parametrize(("how", "path"), RESTARTS.values(), ids=RESTARTS)
def test_a_run_goes_on_after_the_database_was_restarted(restarted_twins, own_cluster, how, path):
    twins = restarted_twins
    twins.publish()
    with watched(path), worker_thread():
        run = twins.disturbed.ask()
        wait_at_point()
        own_cluster.restart(how)
        say("go on")
        if wait_until(run, "retryable", *ENDED).state == "retryable":
            change(run, "run_at = now()")
        peaceful = twins.peaceful.ask()
        wait_until_ended(run)
        wait_until_ended(peaceful)
    twins.must_be_alike()
