"""How long the tests of each folder and of each file took."""

import json
from collections import Counter
from pathlib import Path


class Durations:
    def __init__(self) -> None:
        self._tests: Counter[str] = Counter()
        self._seconds: Counter[str] = Counter()

    def add(self, test: str, phase: str, seconds: float) -> None:
        """Add one phase of a test: its setup, its call or its teardown."""
        file = test.partition("::")[0]
        self._tests[file] += phase == "setup"  # each test has one, even if it is skipped
        self._seconds[file] += seconds

    def per_folder(self) -> list[str]:
        """One line per folder, the longest first; none if all tests are in one folder."""
        tests, seconds = Counter[str](), Counter[str]()
        for file in self._seconds:
            folder = file.rpartition("/")[0]
            tests[folder] += self._tests[file]
            seconds[folder] += self._seconds[file]
        if len(seconds) < 2:
            return []
        return [f"{took:8.1f} s {tests[folder]:6} tests  {folder}" for folder, took in seconds.most_common()]

    def keep(self, path: Path) -> None:
        """Write the seconds of every file, the longest first."""
        path.parent.mkdir(exist_ok=True)
        files = {file: round(seconds, 2) for file, seconds in self._seconds.most_common()}
        path.write_text(json.dumps(files, indent=1) + "\n")
