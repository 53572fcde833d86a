"""What whole runs of feeds share."""

import pytest
from tests.support.feed_world import CallsBack, World, allow_loopback
from tests.support.sftp_server import SftpServer


@pytest.fixture
def world(database, settings, tmp_path):
    """A feed with its partner; afterwards everything that holds after every scenario is looked at."""
    allow_loopback(settings)
    with SftpServer(tmp_path, behaviour=CallsBack) as server:
        made = World(server)
        yield made
        made.check()
