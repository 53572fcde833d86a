"""The table of `make mutants` cannot rot: it names every rule, markers that are there, and tests that are there."""

import ast
import re
from collections import Counter, defaultdict
from pathlib import Path

import pytest
from tests.mutants import ROOT, Mutant, marked, markers, mutants, mutated

ALL = mutants()
PLACES = markers()
#: A row of the page of promises about a rule by its number: rule, test.
_PROMISED = re.compile(r"^\| (\d+) \|.*\| `([a-z]+/test_\w+\.py(?:::test_\w+)?)` \|$", re.MULTILINE)
_CREATED = re.compile(r"^CREATE (?:OR REPLACE )?(?:VIEW|FUNCTION) (\w+)", re.MULTILINE)
_COMMENT = re.compile(r"--.*")
_PYTHON = """
LIMIT = 3  # mutant: trailing
# mutant: above
TOTAL = add(
    "one",
    "two",
)
_SQL = '''
SELECT 1
'''  # mutant: last-line
if (
    LIMIT
    or TOTAL
):  # mutant: header
    print(LIMIT)
FIELDS = {
    "a": 1,  # mutant: entry
    "b": 2,
}
"""
_SQL = """-- mutant: first
CREATE FUNCTION one() RETURNS integer AS $$
    SELECT 1
$$;

CREATE TABLE pairs (
    a integer UNIQUE, -- mutant: column
    b integer
);
"""


def test_every_rule_is_broken_at_least_once():
    assert {mutant.rule for mutant in ALL} == set(range(1, 29))


def test_every_marker_is_there_once_and_is_used():
    assert {name: paths for name, paths in PLACES.items() if len(paths) > 1} == {}
    assert set(PLACES) == {name for mutant in ALL for name in mutant.at}
    assert [name for name in PLACES if not re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", name)] == []


def test_no_marker_is_misspelled_or_inside_the_text_of_a_statement():
    found = Counter(path for paths in PLACES.values() for path in paths)
    for path in (ROOT / "src" / "harvester").rglob("*.*"):
        if path.suffix in {".py", ".sql"}:
            source = path.read_text()
            assert len(re.findall(r"\bmutant\b", source)) == found[path], path
            assert path.suffix == ".sql" or "-- mutant" not in source, path


@pytest.mark.parametrize("mutant", ALL, ids=[f"{mutant.rule}: {mutant.removes}" for mutant in ALL])
def test_a_mutant_changes_its_place_to_something_that_still_parses(mutant: Mutant):
    assert [bool(edit) for edit in (mutant.replace, mutant.new, mutant.before)].count(True) == 1
    [path] = {path for name in mutant.at for path in PLACES[name]}
    source = path.read_text()
    edited = mutated(mutant, source, path.suffix)
    if path.suffix == ".py":
        assert ast.dump(ast.parse(edited)) != ast.dump(ast.parse(source))
    else:
        assert _COMMENT.sub("", edited) != _COMMENT.sub("", source)
        assert edited.count("(") - edited.count(")") == source.count("(") - source.count(")")
    assert mutant.tests
    for test in mutant.tests:
        file, _, name = test.partition("::")
        assert f"def {name.partition('[')[0]}(" in (ROOT / "tests" / file).read_text()


def test_no_mutant_edits_a_view_or_function_that_a_later_file_replaces():
    replaced = []
    for marker, [path] in PLACES.items():
        if path.suffix == ".sql":
            source = path.read_text()
            start, end = marked(source, marker, ".sql")
            for name in _CREATED.findall("\n".join(source.splitlines()[start:end])):
                *_, last = (file for file in _sql_of_app(path) if name in _CREATED.findall(file.read_text()))
                replaced += [(marker, name, last)] if last != path else []
    assert replaced == []


def _sql_of_app(path: Path) -> list[Path]:
    """Return the app's files in the order in which they are applied: its migrations, then what is current."""
    source = ROOT / "src" / "harvester"
    return sorted((source / path.relative_to(source).parts[0]).rglob("*.sql"))


@pytest.mark.parametrize(
    ("source", "suffix", "marker", "lines"),
    [
        (_PYTHON, ".py", "trailing", (1, 2)),
        (_PYTHON, ".py", "above", (3, 7)),
        (_PYTHON, ".py", "last-line", (7, 10)),
        (_PYTHON, ".py", "header", (10, 14)),
        (_PYTHON, ".py", "entry", (15, 19)),
        (_SQL, ".sql", "first", (0, 4)),
        (_SQL, ".sql", "column", (5, 9)),
    ],
)
def test_what_a_marker_marks(source: str, suffix: str, marker: str, lines: tuple[int, int]):
    assert marked(source, marker, suffix) == lines


@pytest.mark.parametrize(
    ("edit", "edited"),
    [
        ({"replace": {"a =": "b =", "1": "2"}}, "if x:\n    b = 2  # mutant: here\n"),
        ({"new": "pass"}, "if x:\n    pass\n"),
        ({"before": "if y:\n    go()"}, "if x:\n    if y:\n        go()\n    a = 1  # mutant: here\n"),
    ],
)
def test_what_an_edit_makes_of_it(edit: dict, edited: str):
    source = "if x:\n    a = 1  # mutant: here\n"
    assert mutated(Mutant(rule=1, removes="", at=["here"], tests=[], **edit), source, ".py") == edited


@pytest.mark.parametrize("part", ["b", "1"])
def test_a_part_that_is_not_there_once_is_refused(part: str):
    mutant = Mutant(rule=1, removes="", at=["here"], tests=[], replace={part: "2"})
    with pytest.raises(ValueError, match=f"'{part}' occurs [02] times at the marker here; it must occur once"):
        mutated(mutant, "a = 1 + 1  # mutant: here\n", ".py")


def test_every_test_that_a_rule_is_promised_by_notices_a_mutant_of_it():
    noticing = defaultdict(list)
    for mutant in ALL:
        noticing[mutant.rule] += mutant.tests
    promised = _PROMISED.findall((ROOT / "docs" / "promises.md").read_text())
    assert promised
    idle = [(rule, test) for rule, test in promised if not any(t.startswith(test) for t in noticing[int(rule)])]
    assert not idle
