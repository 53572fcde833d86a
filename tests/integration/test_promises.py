"""The page of promises names tests; a name that no longer exists is a promise nobody keeps."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
NAMED = re.compile(r"`(?!tests/)((?:[a-z_]+/)+test_\w+\.py)(?:::(test_\w+))?`")


def test_every_promise_names_a_test_that_exists():
    named = NAMED.findall((ROOT / "docs" / "promises.md").read_text())
    assert named
    missing = [f"{path}::{test}" for path, test in named if not _has(ROOT / "tests" / path, test)]
    assert not missing


def _has(path: Path, test: str) -> bool:
    return path.is_file() and f"def {test}" in path.read_text()
