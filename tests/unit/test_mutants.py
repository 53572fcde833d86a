"""The table of `make mutants` cannot rot: it names every rule, code that is there, and tests that are there."""

import re
from collections import defaultdict

import pytest
from tests.mutants import ROOT, Mutant, mutants, source_of

ALL = mutants()
#: A row of the page of promises about a rule by its number: rule, test.
_PROMISED = re.compile(r"^\| (\d+) \|.*\| `([a-z]+/test_\w+\.py(?:::test_\w+)?)` \|$", re.MULTILINE)


def test_every_rule_is_broken_at_least_once():
    assert {mutant.rule for mutant in ALL} == set(range(1, 29))


@pytest.mark.parametrize("mutant", ALL, ids=[f"{mutant.rule}: {mutant.removes}" for mutant in ALL])
def test_what_a_mutant_replaces_is_there_once(mutant: Mutant):
    assert source_of(mutant).read_text().count(mutant.old) == 1
    assert mutant.old != mutant.new
    assert mutant.tests
    for test in mutant.tests:
        path, _, name = test.partition("::")
        assert f"def {name.partition('[')[0]}(" in (ROOT / "tests" / path).read_text()


def test_every_test_that_a_rule_is_promised_by_notices_a_mutant_of_it():
    noticing = defaultdict(list)
    for mutant in ALL:
        noticing[mutant.rule] += mutant.tests
    promised = _PROMISED.findall((ROOT / "docs" / "promises.md").read_text())
    assert promised
    idle = [(rule, test) for rule, test in promised if not any(t.startswith(test) for t in noticing[int(rule)])]
    assert not idle
