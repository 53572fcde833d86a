"""Commands inside the process of the tests: a start of the interpreter for each of many would take minutes.

What a command needs of a process of its own, such as the session with the database, is tried elsewhere.
"""

import contextlib
import io
import sys
from contextlib import nullcontext

from structlog.testing import capture_logs

from harvester.cli import app
from harvester.cli.output import OUT
from tests.support.command import Ran


def run_inside(monkeypatch, modules, *arguments: object, stdin: str = "") -> Ran:
    """Carry out one command whose functions stand in these modules."""
    for module in modules:
        monkeypatch.setattr(module, "session", nullcontext)
    monkeypatch.setattr(app, "end_cleanly", lambda: None)
    monkeypatch.setattr(sys, "stdin", io.StringIO(stdin))
    out, err = io.StringIO(), io.StringIO()
    _forget_screens()
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err), capture_logs():
            code = app.run([str(word) for word in arguments])
    finally:
        _forget_screens()
    return Ran(code, out.getvalue(), err.getvalue())


def _forget_screens() -> None:
    OUT.as_json = False
    for name in ("screen", "errors"):
        vars(OUT).pop(name, None)
