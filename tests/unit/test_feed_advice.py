"""Every error that can end a run has advice, and the runbook says the same as pages, commands and the API."""

import importlib
import pkgutil
from pathlib import Path

import pytest

from harvester.feeds.advice import ADVICE, advice_for
from harvester.kernel.errors import (
    ConfigError,
    Conflict,
    HarvesterError,
    InvalidInput,
    NotFound,
    TerminalError,
    TransientError,
)

RUNBOOK = Path(__file__).parents[2] / "docs" / "runbooks.md"
#: Where errors of a run come from.
PARTS = ("runs", "kernel", "guards", "engine", "pipeline", "feeds")
#: Only alerts go out by HTTP, and only pages are read with the client for pages.
ELSEWHERE = ("harvester.guards.http", "harvester.guards.page_client")
#: Requests of people that a rule refused; none of them ends a run.
REFUSALS = (Conflict, InvalidInput, NotFound)
#: Never raised themselves, or caught before a run ends.
BASES = {TransientError, TerminalError, ConfigError}
#: Keys are read from files by commands only.
BASE_CODES = {"VAULT", "SECRET_IN_ARGS", "INVALID_KEY_FILE"}
#: Codes without a class.
OTHERS = {"UNEXPECTED", "CANCELLED", "ENDING_NOT_STORED"}


def subclasses(kind):
    for found in kind.__subclasses__():
        yield found
        yield from subclasses(found)


def codes():
    for part in PARTS:
        package = importlib.import_module(f"harvester.{part}")
        for found in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            if ".migrations" not in found.name:
                importlib.import_module(found.name)
    kinds = {kind for base in (TransientError, TerminalError) for kind in subclasses(base)} - BASES
    inside = tuple(f"harvester.{part}." for part in PARTS)
    return {
        kind.code
        for kind in kinds
        if kind.__module__.startswith(inside)
        and kind.__module__ not in ELSEWHERE
        and not issubclass(kind, REFUSALS)
        and kind.code not in BASE_CODES
    } | OTHERS


def test_every_error_code_has_advice_and_every_advice_has_an_error():
    listed = [code for advice in ADVICE for code in advice.codes]
    assert len(listed) == len(set(listed)), "one code, one advice"
    assert set(listed) == codes()


def test_an_unknown_code_has_none():
    assert issubclass(TerminalError, HarvesterError)
    assert advice_for("NO_SUCH_CODE") is None
    assert advice_for(None) is None


@pytest.mark.parametrize("advice", ADVICE, ids=[advice.codes[0] for advice in ADVICE])
def test_the_runbook_says_the_same(advice):
    names = ", ".join(f"`{code}`" for code in advice.codes)
    assert f"   | {names} | {advice.cause} | {advice.action} |\n" in RUNBOOK.read_text()
