"""Commands inside the process of the tests: a start of the interpreter for each of many would take minutes.

What a command needs of a process of its own, such as the session with the database, is tried elsewhere.
"""

import contextlib
import io
import sys
from collections.abc import Iterator
from unittest import mock

from django.conf import settings
from structlog.testing import capture_logs

from harvester.cli import app
from harvester.cli.output import OUT
from harvester.cli.session import session
from tests.support.command import Ran


def harvester(*arguments: object, stdin: str = "") -> Ran:
    """Carry out one command on the database of this process."""
    out, err = io.StringIO(), io.StringIO()
    with (
        _standing_session(),
        _own_screens(),
        mock.patch.object(sys, "stdin", io.StringIO(stdin)),
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
        capture_logs(),
    ):
        code = app.run([str(word) for word in arguments])
    assert "Traceback" not in err.getvalue(), err.getvalue()
    return Ran(code, out.getvalue(), err.getvalue())


@contextlib.contextmanager
def _standing_session() -> Iterator[None]:
    """Every command works in the session that the tests have anyway, and leaves signals alone."""
    commands = [module for name, module in sys.modules.items() if name.startswith("harvester.cli.")]
    with contextlib.ExitStack() as patched:
        for module in commands:
            if vars(module).get("session") is session:
                patched.enter_context(mock.patch.object(module, "session", _session))
        patched.enter_context(mock.patch.object(app, "end_cleanly"))
        yield


def _session(*_: object, **__: object) -> contextlib.AbstractContextManager[object]:
    return contextlib.nullcontext(settings.CONFIG)


@contextlib.contextmanager
def _own_screens() -> Iterator[None]:
    _forget_screens()
    try:
        yield
    finally:
        _forget_screens()


def _forget_screens() -> None:
    OUT.as_json = False
    for name in ("screen", "errors"):
        vars(OUT).pop(name, None)
