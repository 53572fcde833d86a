"""`make mutants`: breaks the rules of feeds, one at a time, and runs the tests that keep them; 1 if none notices.

A mutant is the smallest edit that takes one sentence of a rule away; `mutants.toml` lists them. Each gets a copy of the
tree. Only a failed expectation counts: a test that fails because the edited code cannot run says nothing of the rule.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.markup import escape
from rich.table import Table

ROOT = Path(__file__).parents[1]
TABLE = Path(__file__).with_name("mutants.toml")
NOTICED = "noticed"
#: Seconds; pytest ends a single test long before.
LONGEST_RUN = 900
_FAILURE = re.compile(r"^(?:FAILED|ERROR) .*? - (.*)$", re.MULTILINE)
_EXPECTATION = re.compile(r"assert |AssertionError|Failed: (?!Timeout)|(?:Base)?ExceptionGroup: Hypothesis")


@dataclass(frozen=True, kw_only=True)
class Mutant:
    """One sentence of a rule, taken away.

    Attributes:
        rule: its number.
        removes: the sentence, in short.
        file: what is edited, below `src/harvester`.
        old: text that occurs there once.
        new: what stands in its place.
        tests: what must notice, below `tests`.
    """

    rule: int
    removes: str
    file: str
    old: str
    new: str
    tests: list[str]


def mutants() -> list[Mutant]:
    return [Mutant(**row) for row in tomllib.loads(TABLE.read_text())["mutant"]]


def source_of(mutant: Mutant, root: Path = ROOT) -> Path:
    return root / "src" / "harvester" / mutant.file


def verdict_on(mutant: Mutant) -> str:
    """What the mutant's tests say of it."""
    with tempfile.TemporaryDirectory(prefix="harvester-mutant-") as directory:
        copy = Path(directory)
        for name in ("src", "tests"):
            shutil.copytree(ROOT / name, copy / name)
        shutil.copy(ROOT / "pyproject.toml", copy)
        path = source_of(mutant, copy)
        path.write_text(path.read_text().replace(mutant.old, mutant.new))
        return _judged(_tested(mutant, copy))


def _tested(mutant: Mutant, copy: Path) -> subprocess.CompletedProcess[str]:
    # To import the plugin for tests of the API takes longer than most of these tests.
    plugins = ["-p", "no:cacheprovider", "-p", "no:schemathesis"]
    command = [sys.executable, "-m", "pytest", "-q", "-x", "--tb=no", "-rfE", *plugins]
    return subprocess.run(
        [*command, *(f"tests/{test}" for test in mutant.tests)],
        cwd=copy,
        # The lines that tell why a test failed are cut to the width of the terminal.
        env={**os.environ, "PYTHONPATH": str(copy / "src"), "COLUMNS": "1000"},
        capture_output=True,
        text=True,
        timeout=LONGEST_RUN,
        check=False,
    )


def _judged(done: subprocess.CompletedProcess[str]) -> str:
    if done.returncode == 0:
        return "survived"
    reasons = _FAILURE.findall(done.stdout)
    if any(_EXPECTATION.match(reason) for reason in reasons):
        return NOTICED
    return "failed otherwise: " + (reasons or done.stdout.splitlines() or done.stderr.splitlines() or ["?"])[-1][:200]


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.mutants", description=__doc__.splitlines()[0])
    parser.add_argument("rules", nargs="*", type=int, help="numbers of rules; all of them by default")
    parser.add_argument("--together", type=int, default=1, help="how many at once; one by default")
    options = parser.parse_args()
    chosen = [mutant for mutant in mutants() if mutant.rule in (options.rules or [mutant.rule])]
    verdicts = _verdicts(chosen, options.together)
    table = Table("rule", "without", "in", "verdict")
    for mutant, verdict in zip(chosen, verdicts, strict=True):
        table.add_row(str(mutant.rule), mutant.removes, mutant.file, escape(verdict))
    Console().print(table)
    left = sum(verdict != NOTICED for verdict in verdicts)
    sys.exit(f"{left} of {len(chosen)} mutants were not noticed" if left else 0)


def _verdicts(chosen: list[Mutant], together: int) -> list[str]:
    """In their order; each is told when it is known, because all of them take a while."""
    verdicts = list[str]()
    with ThreadPoolExecutor(together) as pool:
        for mutant, verdict in zip(chosen, pool.map(verdict_on, chosen), strict=True):
            sys.stderr.write(f"{mutant.rule:>2} {mutant.removes}: {verdict}\n")
            verdicts.append(verdict)
    return verdicts


if __name__ == "__main__":
    main()
