"""A feed that is changed while its run is in progress."""

import threading

import pytest
from django.db import connections
from tests.support.feed_rows import ADMIN
from tests.support.feed_world import World, allow_loopback
from tests.support.sftp_server import SftpServer, changes_file_while_read
from tests.support.tables import rows

from harvester.feeds import verbs
from harvester.feeds.models import Feed

pytestmark = pytest.mark.usefixtures("database")


@pytest.mark.parametrize(
    ("change", "next_outcome"), [({"max_rows": 1000}, "PROMOTED"), ({"use_manifest": False}, "SKIPPED")]
)
def test_the_same_file_is_read_again_where_the_change_may_read_it_differently(settings, tmp_path, change, next_outcome):
    allow_loopback(settings)

    def edit():
        verbs.update(ADMIN, Feed.objects.get().id, change)
        connections.close_all()

    def meanwhile(path):
        """Not in the thread of the server: Django refuses one that has an event loop."""
        person = threading.Thread(target=edit)
        person.start()
        person.join(30)

    with SftpServer(tmp_path, behaviour=changes_file_while_read(meanwhile)) as server:
        world = World(server)
        Feed.objects.update(secret_fields=["password"])
        world.put(100, 200)
        assert world.run().outcome == "PROMOTED"
        assert rows("SELECT verb FROM audit_events WHERE actor_id = %s", ADMIN.id) == [("FEED_UPDATED",)]
        assert world.run().outcome == next_outcome
        assert world.run().outcome == "SKIPPED"
