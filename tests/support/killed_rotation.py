"""`python -m tests.support.killed_rotation`: rotates keys again and again, killed one point later each time.

Reads the old and the new ring from standard input, one line each. Before and after each statement and each
commit of a rotation stands a point; child number N is killed by SIGKILL at point N. After each death one line of
JSON contains how many secrets open with the new ring, and under which keys they are; then a rotation that nobody
kills has to finish the work. Ends when a child came through alive.
"""

import json
import os
import signal
import sys
from collections import Counter
from collections.abc import Callable
from typing import Any

import django

django.setup()

from django.db import connection, connections  # noqa: E402

from harvester.guards.models import SealedSecret  # noqa: E402
from harvester.guards.secrets import open_document, rotate  # noqa: E402
from harvester.guards.vault import KeyRing, VaultError  # noqa: E402
from tests.support.waiting import wait_for  # noqa: E402


class KilledAt:
    """Counts points and ends the process at one of them."""

    def __init__(self, point: int) -> None:
        self.left = point

    def pass_point(self) -> None:
        if self.left == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        self.left -= 1

    def around(self, action: Callable[..., Any]) -> Callable[..., Any]:
        def run(*args: Any, **kwargs: Any) -> Any:
            self.pass_point()
            result = action(*args, **kwargs)
            self.pass_point()
            return result

        return run

    def statement(self, execute: Callable[..., Any], *args: Any) -> Any:
        return self.around(execute)(*args)


def rotate_killed_at(ring: KeyRing, point: int) -> bool:
    """Rotate in a child process; return whether it was killed."""
    connections.close_all()
    child = os.fork()
    if child == 0:
        killer = KilledAt(point)
        connection.commit = killer.around(connection.commit)  # type: ignore[method-assign]
        with connection.execute_wrapper(killer.statement):
            list(rotate(ring, batch=2))
        os._exit(0)
    _, status = os.waitpid(child, 0)
    # Its session outlives it for a moment, and what it has locked counts as in use until then.
    wait_for(_is_alone, "the end of the dead child's session")
    return os.WIFSIGNALED(status)


def _is_alone() -> bool:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT count(*) FROM pg_locks WHERE pid <> pg_backend_pid() "
            "AND (locktype = 'advisory' OR relation = 'sealed_secrets'::regclass)"
        )
        return bool(cursor.fetchone()[0] == 0)


def readable(ring: KeyRing) -> int:
    return sum(opens(row, ring) for row in SealedSecret.objects.all())


def opens(row: SealedSecret, ring: KeyRing) -> bool:
    try:
        return open_document(row.owner_kind, row.owner_id, ring=ring) == {"password": f"of {row.owner_id}"}
    except VaultError:
        return False


def main() -> None:
    rings = [KeyRing.parse(line.strip()) for line in sys.stdin]
    sealed_with_old_key = list(SealedSecret.objects.all())
    killed, point = True, 0
    while killed:
        SealedSecret.objects.bulk_update(sealed_with_old_key, ["key_id", "payload"])
        killed = rotate_killed_at(rings[1], point)
        keys = Counter(SealedSecret.objects.values_list("key_id", flat=True))
        figures = {"point": point, "killed": killed, "readable": readable(rings[1]), "keys": keys}
        *_, end = rotate(rings[1], batch=2)
        figures |= {"finished": readable(rings[1]), "left": end.left, "rewritten": end.rewritten}
        print(json.dumps(figures), flush=True)  # noqa: T201 - the parent reads it
        point += 1


if __name__ == "__main__":
    main()
