"""One migrated database that all processes of a run copy: initdb and the migrations would take each of them seconds."""

import fcntl
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

from django.conf import settings

from harvester.engine.embedded import Cluster
from harvester.engine.embedded.layout import Layout
from tests.support.tables import database_hosts, make_effects, use_database_hosts

#: Where the processes of a run find it; a run of one process has none.
VARIABLE = "TESTS_COPIED_DATABASE"


def offer() -> None:
    """Let all processes that are started from now on share one; the first that needs it makes it."""
    place = Path(tempfile.mkdtemp(prefix="harvester-copied-"))
    # The server's user has to reach it.
    place.chmod(0o755)
    os.environ[VARIABLE] = str(place)


def withdraw() -> None:
    if place := os.environ.pop(VARIABLE, None):
        shutil.rmtree(place, ignore_errors=True)


def copy_to(home: Path) -> None:
    """Put a copy into a home that has no database yet; leave it as it is if there is nothing to copy."""
    if VARIABLE not in os.environ:
        return
    place = Path(os.environ[VARIABLE])
    original = place / "home"
    with (place / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (place / "made").exists():
            shutil.rmtree(original, ignore_errors=True)
            _make(original)
            (place / "made").touch()
    # Its owner has to stay the same.
    subprocess.run(["cp", "-a", Layout.of(original).data, Layout.of(home).data], check=True)


def _make(home: Path) -> None:
    from harvester.ops.database import migrate

    made = Cluster(home, os_user=settings.CONFIG.database_os_user, options={"fsync": "off"})
    before = database_hosts()
    with made.hold():
        use_database_hosts(dict.fromkeys(before, str(made.socket_dir)))
        migrate()
        make_effects()
        use_database_hosts(before)
