"""Words between a test and the processes it starts, as files: they are heard while the database is away."""

import os
import tempfile
import time
from pathlib import Path

from tests.support.waiting import wait_for

VARIABLE = "TEST_SIGNALS"
#: Only ends a handler whose test went wrong.
LONGEST_SECONDS = 60.0


def new_place() -> Path:
    """From now on words are exchanged in an empty directory; processes started later inherit it."""
    place = Path(tempfile.mkdtemp(prefix="harvester-signals-"))
    os.environ[VARIABLE] = str(place)
    return place


def say(word: str, text: str = "") -> None:
    if VARIABLE not in os.environ:
        return
    draft = _path(f"{word}.{os.getpid()}.draft")
    draft.write_text(text)
    draft.replace(_path(word))


def forget() -> None:
    """As if nothing had been said yet."""
    for path in Path(os.environ[VARIABLE]).iterdir():
        path.unlink()


def heard(word: str) -> str | None:
    """What was said, `-` if no text was; None if nothing was said yet."""
    try:
        return _path(word).read_text() or "-"
    except FileNotFoundError:
        return None


def wait_to_hear(word: str) -> str:
    return wait_for(lambda: heard(word), word, LONGEST_SECONDS)


def wait_quietly(word: str) -> None:
    """The same for handlers: giving up is not an error there, the test fails on its own condition."""
    deadline = time.monotonic() + LONGEST_SECONDS
    while heard(word) is None and time.monotonic() < deadline:
        time.sleep(0.01)


def _path(word: str) -> Path:
    return Path(os.environ[VARIABLE]) / word
