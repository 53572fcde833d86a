"""Tests wait for conditions, not for times: what depends on a short real time fails on a busy machine."""

from pathlib import Path

TESTS = Path(__file__).parents[1]
#: In two parts, so that this file does not contain it.
SLEEP = "time." + "sleep("
#: Not waits: the pace of an enqueuer, a slow disk, and a child process that never ends by itself.
PACED = {"faults/test_database_lost.py": 1, "integration/test_guards_sftp.py": 1, "integration/test_sandbox.py": 1}


def test_no_test_sleeps_for_a_fixed_time():
    found = {str(path.relative_to(TESTS)): path.read_text().count(SLEEP) for path in TESTS.rglob("test_*.py")}
    assert {name: count for name, count in found.items() if count} == PACED
