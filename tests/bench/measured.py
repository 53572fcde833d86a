"""Runs a command and says, as one line of JSON, how it ended and how much memory it had at most.

Run it with `-S -E` and import nothing large: Linux counts what a process had before `exec` as its own, so a command
that the benchmark started itself would never seem smaller than the benchmark.
"""

import json
import os
import sys

KILOBYTES_OF_A_MEGABYTE = 1024


def main() -> None:
    child = os.fork()
    if not child:
        silence = os.open(os.devnull, os.O_WRONLY)
        os.dup2(silence, sys.stdout.fileno())
        os.execvp(sys.argv[1], sys.argv[1:])
    _, status, used = os.wait4(child, 0)
    report = {"code": os.waitstatus_to_exitcode(status), "peak_mb": used.ru_maxrss / KILOBYTES_OF_A_MEGABYTE}
    print(json.dumps(report), flush=True)  # noqa: T201 - the benchmark reads it


main()
