"""`make mutants`: breaks the rules of feeds, one at a time, and runs the tests that keep them; 1 if none notices.

A mutant is the smallest edit that takes one sentence of a rule away; `mutants.toml` lists them. It finds its place by a
marker in the source, `# mutant: name` or `-- mutant: name`, so code can move and names can change without it.
Only a failed expectation counts: a test that fails because the edited code cannot run says nothing about the rule.
"""

import argparse
import ast
import os
import re
import shutil
import subprocess
import sys
import tempfile
import textwrap
import tomllib
from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from queue import SimpleQueue

from rich.console import Console
from rich.markup import escape
from rich.table import Table

ROOT = Path(__file__).parents[1]
TABLE = Path(__file__).with_name("mutants.toml")
NOTICED = "noticed"
#: Seconds; pytest ends a single test long before.
LONGEST_RUN = 900
_MARKER = re.compile(r"(?:#|--) mutant: (\S+)$", re.MULTILINE)
_FAILURE = re.compile(r"^(?:FAILED|ERROR) .*? - (.*)$", re.MULTILINE)
_EXPECTATION = re.compile(r"assert |AssertionError|Failed: (?!Timeout)|(?:Base)?ExceptionGroup: Hypothesis")


@dataclass(frozen=True, kw_only=True)
class Mutant:
    """One sentence of a rule, taken away by one kind of edit of what its markers mark.

    Attributes:
        rule: its number.
        removes: the sentence, in short.
        at: its markers, all in one file.
        tests: what must notice, below `tests`.
        replace: parts that occur once in what is marked, and what stands in their place.
        new: what stands in place of everything that is marked, indented like it; `pass` deletes a statement.
        before: what is put before it, indented like it.
    """

    rule: int
    removes: str
    at: list[str]
    tests: list[str]
    replace: dict[str, str] = field(default_factory=dict)
    new: str = ""
    before: str = ""


def mutants() -> list[Mutant]:
    return [Mutant(**row) for row in tomllib.loads(TABLE.read_text())["mutant"]]


def markers(root: Path = ROOT) -> dict[str, list[Path]]:
    """Each marker in the source, with a file for each time it occurs."""
    found = defaultdict(list)
    for path in sorted((root / "src" / "harvester").rglob("*.*")):
        if path.suffix in {".py", ".sql"}:
            for name in _MARKER.findall(path.read_text()):
                found[name].append(path)
    return dict(found)


def mutated(mutant: Mutant, source: str, suffix: str) -> str:
    """Return the source of a file with the mutant's edit."""
    for marker in mutant.at:
        lines = source.splitlines(keepends=True)
        start, end = marked(source, marker, suffix)
        text = "".join(lines[start:end])
        indent = text[: len(text) - len(text.lstrip())]
        for part, new in mutant.replace.items():
            if text.count(part) != 1:
                raise ValueError(f"{part!r} occurs {text.count(part)} times at the marker {marker}; it must occur once")
            text = text.replace(part, new)
        if mutant.new:
            text = textwrap.indent(mutant.new, indent) + "\n"
        if mutant.before:
            text = textwrap.indent(mutant.before, indent) + "\n" + text
        source = "".join([*lines[:start], text, *lines[end:]])
    return source


def marked(source: str, marker: str, suffix: str) -> tuple[int, int]:
    """Return the slice of lines that a marker marks.

    In Python it is the statement that the marker is in or directly above, without the body of one that has a body.
    In SQL it is everything between two blank lines, so that no marker has to be inside the text of a function.
    """
    lines = source.splitlines()
    [at] = [number for number, line in enumerate(lines) if _MARKER.findall(line) == [marker]]
    if suffix == ".sql":
        blank = [-1, *(number for number, line in enumerate(lines) if not line.strip()), len(lines)]
        return max(number for number in blank if number < at) + 1, min(number for number in blank if number > at)
    line = at + 2 if lines[at].lstrip().startswith("#") else at + 1
    statements = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.stmt)]
    around = [node for node in statements if node.lineno <= line <= node.end_lineno]
    innermost = max(around, key=lambda node: node.lineno)
    body = getattr(innermost, "body", None)
    return innermost.lineno - 1, body[0].lineno - 1 if body else innermost.end_lineno


def _verdict_on(mutant: Mutant, path: Path, copy: Path) -> str:
    """Return what the mutant's tests say about it, and leave the copy of the tree as it was."""
    edited = copy / path.relative_to(ROOT)
    source = edited.read_text()
    edited.write_text(mutated(mutant, source, path.suffix))
    try:
        return _judged(_tested(mutant, copy))
    finally:
        edited.write_text(source)


def _tested(mutant: Mutant, copy: Path) -> subprocess.CompletedProcess[str]:
    # To import the plugin for tests of the API takes longer than most of these tests.
    plugins = ["-p", "no:cacheprovider", "-p", "no:schemathesis"]
    command = [sys.executable, "-m", "pytest", "-q", "-x", "--tb=no", "-rfE", *plugins]
    return subprocess.run(
        [*command, *(f"tests/{test}" for test in mutant.tests)],
        cwd=copy,
        # The lines that say why a test failed are cut to the width of the terminal. The next mutant uses the same copy,
        # and finds every module compiled except the edited ones.
        env={**os.environ, "PYTHONPATH": str(copy / "src"), "COLUMNS": "1000", "PYTHONDONTWRITEBYTECODE": ""},
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
    places = markers()
    paths = [places[mutant.at[0]][0] for mutant in chosen]
    verdicts = _verdicts(chosen, paths, options.together)
    table = Table("rule", "without", "in", "verdict")
    for mutant, path, verdict in zip(chosen, paths, verdicts, strict=True):
        table.add_row(str(mutant.rule), mutant.removes, str(path.relative_to(ROOT / "src/harvester")), escape(verdict))
    Console().print(table)
    left = sum(verdict != NOTICED for verdict in verdicts)
    sys.exit(f"{left} of {len(chosen)} mutants were not noticed" if left else 0)


def _verdicts(chosen: list[Mutant], paths: list[Path], together: int) -> list[str]:
    """Return them in order; each is printed when it is known, because all of them take a while."""
    verdicts = list[str]()
    copies = SimpleQueue[Path]()

    def verdict_on(mutant: Mutant, path: Path) -> str:
        copy = copies.get()
        try:
            return _verdict_on(mutant, path, copy)
        finally:
            copies.put(copy)

    with tempfile.TemporaryDirectory(prefix="harvester-mutants-") as directory:
        for number in range(together):
            copy = Path(directory, str(number))
            for name in ("src", "tests"):
                shutil.copytree(ROOT / name, copy / name)
            shutil.copy(ROOT / "pyproject.toml", copy)
            copies.put(copy)
        with ThreadPoolExecutor(together) as pool:
            for mutant, verdict in zip(chosen, pool.map(verdict_on, chosen, paths), strict=True):
                sys.stderr.write(f"{mutant.rule:>2} {mutant.removes}: {verdict}\n")
                verdicts.append(verdict)
    return verdicts


if __name__ == "__main__":
    main()
