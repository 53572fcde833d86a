"""An embedded PostgreSQL server that runs exactly as long as some process holds it.

    cluster = Cluster(home)
    with cluster.hold():
        psycopg.connect(**cluster.address(APP_ROLE))

    layout      the paths below a home; pure
    users       the user that runs the server, and what that user can access
    binaries    which PostgreSQL is used, copied if the server's user cannot access it
    settings    the text of harvester.conf
    datadir     atomic initdb, the checks of an existing directory
    places      the home and the socket directory, created or rejected
    processes   which processes belong to a cluster, and how they are ended
    server      start, wait until it answers, stop
    cluster     the public interface: holds and their locks

`docs/decisions/embedded-database.md` explains the design.
"""

from harvester.engine.embedded.cluster import Cluster, Hold
from harvester.engine.embedded.layout import APP_ROLE, DATABASE, OWNER_ROLE

__all__ = ["APP_ROLE", "DATABASE", "OWNER_ROLE", "Cluster", "Hold"]
