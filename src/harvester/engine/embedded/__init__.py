"""An embedded PostgreSQL server that runs exactly as long as some process holds it.

    cluster = Cluster(home)
    with cluster.hold():
        psycopg.connect(**cluster.address(APP_ROLE))

    layout      where everything lies below a home; pure
    locks       flocks that the kernel drops with the process
    users       who runs the server, and what that user can reach
    binaries    which PostgreSQL is used, copied where the server's user could not reach it
    settings    the text of harvester.conf
    datadir     initdb once and whole, the checks of an existing directory
    places      the home and the directory of the socket, made or refused
    processes   which processes belong to a cluster, and how they end
    server      start, wait until it answers, stop
    cluster     the holds, and the public face

`docs/decisions/embedded-database.md` says why it is done this way.
"""

from harvester.engine.embedded.cluster import Cluster, Hold
from harvester.engine.embedded.layout import APP_ROLE, DATABASE, OWNER_ROLE

__all__ = ["APP_ROLE", "DATABASE", "OWNER_ROLE", "Cluster", "Hold"]
