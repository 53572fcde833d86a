"""`python -m tests.support.enqueue_herd 20 key`: as many processes enqueue a job with one dedupe key at once.

Each says `ready:<number>`, waits for `go` and then says `made:<number>` with the job's id and whether it made it.
"""

import os
import sys

import django

django.setup()

from harvester.engine.enqueue import enqueue  # noqa: E402
from tests.support import kinds  # noqa: E402, F401 - registers the kinds
from tests.support.signals import say, wait_quietly  # noqa: E402


def main(count: int, key: str) -> int:
    children = [os.fork() or _child(number, key) for number in range(count)]
    return max(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children)


def _child(number: int, key: str) -> None:
    say(f"ready:{number}")
    wait_quietly("go")
    made = enqueue("test.noop", dedupe_key=key)
    say(f"made:{number}", f"{made.job_id} {made.created}")
    os._exit(0)


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), sys.argv[2]))
