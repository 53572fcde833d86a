"""Logs: one record for each event, without secrets.

An event is a constant name with typed fields; ids, not objects. What belongs to all events of a job or a run is
bound once (`log_context`). Everything that this process logs, through structlog or the standard library, takes
the same way: context, logger, level, time in UTC, traceback as text, redaction, one line of JSON. On a terminal
the line is made for people.
"""

import datetime as dt
import json
import logging
import math
import re
import sys
import threading
from contextlib import AbstractContextManager, suppress
from types import TracebackType
from typing import Any, TextIO

import structlog
from structlog.typing import EventDict, ExcInfo, Processor

from harvester.guards.redaction import redact

#: What a log line carries beside the event's own fields, in this order.
FIRST_FIELDS = ("timestamp", "level", "event", "logger")
#: Debug records of the database layer would print every parameter of every statement, those of HTTP every header.
QUIETEST_LEVELS = {"django.db.backends": logging.INFO, "asyncio": logging.INFO, "httpcore": logging.INFO}

_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")
_CONTROL_BUT_LINES = re.compile(_CONTROL.pattern.replace(r"\x00-\x1f", r"\x00-\x08\x0b-\x1f"))
#: Texts of several lines, which a terminal shows as such.
_MULTILINE_FIELDS = frozenset({"exception", "stack", "stack_info"})


def configure_logging(level: str = "info", log_format: str = "auto", *, stream: TextIO | None = None) -> None:
    """Send all logs of this process to one stream. May be called again; the last call counts.

    Args:
        level: the least severe level that is logged: debug, info, warning, error or critical.
        log_format: json, console, or auto (console on a terminal, else json).
        stream: where lines go; standard error unless said otherwise.
    """
    stream = stream or sys.stderr
    number = logging.getLevelNamesMapping()[level.upper()]
    is_console = log_format == "console" or (log_format == "auto" and stream.isatty())
    renderer = _console_renderer(colors=stream.isatty()) if is_console else _render_json
    handler = _OneStream(stream)
    handler.setFormatter(_formatter(renderer, escape=is_console))
    _take_over(handler, number)
    structlog.configure(
        processors=[
            *_annotations(),
            structlog.processors.StackInfoRenderer(),
            structlog.stdlib.ProcessorFormatter.wrap_for_formatter,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(number),
        logger_factory=structlog.stdlib.LoggerFactory(),
        cache_logger_on_first_use=False,
    )


def log_uncaught() -> None:
    """Log what ends the process, a thread or a finaliser, instead of the interpreter's own unredacted print.

    For the main function of a process; a library or a test leaves these hooks alone.
    """
    sys.excepthook = _log_uncaught
    threading.excepthook = lambda end: _log_thread_end(end.exc_type, end.exc_value, end.exc_traceback, end.thread)
    sys.unraisablehook = lambda end: _log_uncaught(end.exc_type, end.exc_value, end.exc_traceback)


#: Where the number of a request stands among what the server knows of it, for its line in the log.
REQUEST_ID = "harvester.request_id"


def bind(**ids: Any) -> None:
    """Add these fields to every event that this thread or task logs from now on."""
    structlog.contextvars.bind_contextvars(**ids)


def log_context(**ids: Any) -> AbstractContextManager[None]:
    """Bind these fields inside the block only."""
    return structlog.contextvars.bound_contextvars(**ids)


class _OneStream(logging.StreamHandler[TextIO]):
    """Writes lines. A record that cannot be printed becomes a line that says so.

    The standard library would print the record's raw arguments instead, with whatever secret is in them.
    """

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802 - logging's own name
        problem = sys.exc_info()[0]
        line = {
            "timestamp": dt.datetime.now(dt.UTC).isoformat().replace("+00:00", "Z"),
            "level": "error",
            "event": "LOG_RECORD_UNPRINTABLE",
            "logger": str(redact(record.name)),
            "problem": problem.__name__ if problem else "unknown",
        }
        # The stream itself may be what failed, and then nobody is left to tell.
        with suppress(Exception):
            self.stream.write(json.dumps(line) + self.terminator)
            self.flush()


def _annotations() -> list[Processor]:
    return [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_logger_name,
        structlog.stdlib.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
    ]


def _name_foreign(_: Any, __: str, event_dict: EventDict) -> EventDict:
    """Give what a library said a constant name; its words become a field.

    Django attaches the whole request, whose query may hold anything. A host that the portal does not answer to is
    everybody's to send: one line, without the traceback and without what was sent.
    """
    event_dict["message"] = event_dict.pop("event", "")
    event_dict["event"] = "LIBRARY_MESSAGE"
    event_dict.pop("request", None)
    if event_dict.get("logger") == "django.security.DisallowedHost":
        event_dict.pop("exc_info", None)
        event_dict.update(event="HOST_NOT_ALLOWED", level="warning", message="see HARVESTER_ALLOWED_HOSTS")
    return event_dict


def _formatter(renderer: Processor, *, escape: bool) -> logging.Formatter:
    return structlog.stdlib.ProcessorFormatter(
        foreign_pre_chain=[structlog.stdlib.ExtraAdder(), *_annotations(), _name_foreign],
        processors=[
            structlog.stdlib.ProcessorFormatter.remove_processors_meta,
            structlog.processors.format_exc_info,
            _redact_event,
            *([_escape_controls] if escape else []),
            renderer,
        ],
    )


def _take_over(handler: logging.Handler, level: int) -> None:
    """Make this handler the only one, so that nothing is printed past the redaction.

    Handlers of others on the root stay only if they are no handlers of the standard library: pytest's.
    """
    root = logging.getLogger()
    for old in list(root.handlers):
        if isinstance(old, _OneStream) or type(old).__module__.startswith("logging"):
            root.removeHandler(old)
    for name in list(logging.root.manager.loggerDict):
        logger = logging.getLogger(name)
        logger.handlers.clear()
        logger.propagate = True
    for name, quietest in QUIETEST_LEVELS.items():
        logging.getLogger(name).setLevel(max(level, quietest))
    root.addHandler(handler)
    root.setLevel(level)
    logging.captureWarnings(capture=True)


def _redact_event(_: Any, __: str, event: EventDict) -> EventDict:
    """The last step before rendering: every field, the traceback's text included."""
    time = event.pop("timestamp")
    clean = {"timestamp": time, **_plain(redact(event))}
    first = {name: clean.pop(name) for name in FIRST_FIELDS}
    return {**first, **clean}


def _plain(value: Any) -> Any:
    """Only what JSON knows. Bytes are told by their number: they may be a ciphertext, or half a file."""
    if value is None or isinstance(value, str | int):
        return value
    if isinstance(value, dict):
        return {str(_plain(name)): _plain(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, bytes):
        return f"<{len(value)} bytes>"
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    return value.isoformat() if isinstance(value, dt.date | dt.time) else str(value)


def _render_json(_: Any, __: str, event: EventDict) -> str:
    # ASCII only, so that no line separator and no broken character of any kind leaves the line.
    return json.dumps(event, ensure_ascii=True)


def _console_renderer(*, colors: bool) -> Processor:
    return structlog.dev.ConsoleRenderer(
        # Tracebacks are text already. The pretty ones would show local variables, which is where secrets are.
        exception_formatter=structlog.dev.plain_traceback,
        colors=colors,
        sort_keys=False,
    )


def _escape_controls(_: Any, __: str, event: EventDict) -> EventDict:
    """A value must neither begin a line of its own nor steer the terminal."""
    return {name: _escape(value, keep_lines=name in _MULTILINE_FIELDS) for name, value in event.items()}


def _escape(value: Any, *, keep_lines: bool) -> Any:
    if not isinstance(value, str):
        return value
    pattern = _CONTROL_BUT_LINES if keep_lines else _CONTROL
    return pattern.sub(lambda found: found[0].encode("unicode_escape").decode(), value)


def _log_uncaught(
    kind: type[BaseException], error: BaseException | None, traceback: TracebackType | None, **fields: Any
) -> None:
    if issubclass(kind, KeyboardInterrupt):
        return
    exc_info: ExcInfo | bool = (kind, error, traceback) if error is not None else False
    structlog.get_logger(__name__).critical("UNCAUGHT_EXCEPTION", exc_info=exc_info, kind=kind.__name__, **fields)


def _log_thread_end(
    kind: type[BaseException],
    error: BaseException | None,
    traceback: TracebackType | None,
    thread: threading.Thread | None,
) -> None:
    if not issubclass(kind, SystemExit):
        _log_uncaught(kind, error, traceback, thread=thread.name if thread else "unknown")
