"""What a run of several folders says about their durations."""

import json

from tests.support.durations import Durations


def test_folders_and_files_are_listed_with_the_longest_first(tmp_path):
    durations = Durations()
    for test, phase, seconds in [
        ("tests/unit/test_a.py::test_one[x::y]", "setup", 0.5),
        ("tests/unit/test_a.py::test_one[x::y]", "call", 1.0),
        ("tests/engine/test_b.py::test_two", "setup", 0.25),
        ("tests/engine/test_b.py::test_two", "call", 20.0),
        ("tests/engine/test_b.py::test_two", "teardown", 0.25),
        ("tests/unit/test_c.py::test_skipped", "setup", 2.0),
    ]:
        durations.add(test, phase, seconds)
    assert durations.per_folder() == [
        "    20.5 s      1 tests  tests/engine",
        "     3.5 s      2 tests  tests/unit",
    ]
    durations.keep(tmp_path / "build" / "durations.json")
    kept = json.loads((tmp_path / "build" / "durations.json").read_text())
    assert list(kept.items()) == [
        ("tests/engine/test_b.py", 20.5),
        ("tests/unit/test_c.py", 2.0),
        ("tests/unit/test_a.py", 1.5),
    ]


def test_a_run_of_one_folder_says_nothing():
    durations = Durations()
    durations.add("tests/unit/test_a.py::test_one", "call", 1.0)
    assert durations.per_folder() == []
