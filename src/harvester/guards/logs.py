"""Logs: one record for each event, without secrets.

An event is a constant name with typed fields; ids, not objects. Fields of all events of a job or a run are bound once
(`log_context`). Everything that this process logs, through structlog or the standard library, is processed the same
way: context, logger, level, time in UTC, traceback as text, redaction, one line of JSON. On a terminal the line is
formatted for people.
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

#: Fields of all log lines, before the event's own, in this order.
FIRST_FIELDS = ("timestamp", "level", "event", "logger")
#: Debug records of the database layer contain all parameters of all statements, those of HTTP all headers.
QUIETEST_LEVELS = {"django.db.backends": logging.INFO, "asyncio": logging.INFO, "httpcore": logging.INFO}

_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")
_CONTROL_BUT_LINES = re.compile(_CONTROL.pattern.replace(r"\x00-\x1f", r"\x00-\x08\x0b-\x1f"))
#: Texts of several lines, which keep their line breaks on a terminal.
_MULTILINE_FIELDS = frozenset({"exception", "stack", "stack_info"})


def configure_logging(level: str = "info", log_format: str = "auto", *, stream: TextIO | None = None) -> None:
    """Send all logs of this process to one stream. May be called again; the last call counts.

    Args:
        level: the least severe level that is logged: debug, info, warning, error or critical.
        log_format: json, console, or auto (console on a terminal, else json).
        stream: where lines go, by default standard error.
    """
    stream = stream or sys.stderr
    number = logging.getLevelNamesMapping()[level.upper()]
    renderers: list[Processor] = [_render_json]
    if log_format == "console" or (log_format == "auto" and stream.isatty()):
        # Tracebacks are text already. The pretty ones would show local variables, which may be secrets.
        plain = structlog.dev.plain_traceback
        console = structlog.dev.ConsoleRenderer(exception_formatter=plain, colors=stream.isatty(), sort_keys=False)
        renderers = [_escape_controls, console]
    annotations: list[Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_logger_name,
        structlog.stdlib.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
    ]
    handler = _OneStream(stream)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=[structlog.stdlib.ExtraAdder(), *annotations, _name_foreign],
            processors=[
                structlog.stdlib.ProcessorFormatter.remove_processors_meta,
                structlog.processors.format_exc_info,
                _redact_event,
                *renderers,
            ],
        )
    )
    _replace_handlers(handler, number)
    structlog.configure(
        processors=[
            *annotations,
            structlog.processors.StackInfoRenderer(),
            structlog.stdlib.ProcessorFormatter.wrap_for_formatter,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(number),
        logger_factory=structlog.stdlib.LoggerFactory(),
        cache_logger_on_first_use=False,
    )


def log_uncaught() -> None:
    """Log errors that end the process, a thread or a finalizer, which the interpreter would print unredacted.

    Only for the main function of a process, not for libraries and tests.
    """
    sys.excepthook = _log_uncaught
    threading.excepthook = _log_thread_end
    sys.unraisablehook = lambda end: _log_uncaught(end.exc_type, end.exc_value, end.exc_traceback)


#: The key of the request id in the server's request environment.
REQUEST_ID = "harvester.request_id"


def bind(**ids: Any) -> None:
    """Add these fields to every event that this thread or task logs from now on."""
    structlog.contextvars.bind_contextvars(**ids)


def log_context(**ids: Any) -> AbstractContextManager[None]:
    """Bind these fields inside the block only."""
    return structlog.contextvars.bound_contextvars(**ids)


class _OneStream(logging.StreamHandler[TextIO]):
    """Writes lines. A record that cannot be printed is replaced by the event LOG_RECORD_UNPRINTABLE.

    The standard library would print the record's raw arguments instead, including secrets.
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
        # If the stream itself failed, there is nowhere to report it.
        with suppress(Exception):
            self.stream.write(json.dumps(line) + self.terminator)
            self.flush()


def _name_foreign(_: Any, __: str, event_dict: EventDict) -> EventDict:
    """Give a library's message a constant event name; its text becomes a field.

    Django attaches the whole request, whose query may contain anything. Anyone can send a host that is not allowed:
    that becomes one line, without the traceback and the sent value.
    """
    event_dict["message"] = event_dict.pop("event", "")
    event_dict["event"] = "LIBRARY_MESSAGE"
    event_dict.pop("request", None)
    if event_dict.get("logger") == "django.security.DisallowedHost":
        event_dict.pop("exc_info", None)
        event_dict.update(event="HOST_NOT_ALLOWED", level="warning", message="see HARVESTER_ALLOWED_HOSTS")
    return event_dict


def _replace_handlers(handler: logging.Handler, level: int) -> None:
    """Make this handler the only one, so that nothing bypasses the redaction.

    Of the root's handlers, only those from outside the standard library stay: pytest's.
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
    """Redact all fields, including the traceback's text; the last step before rendering."""
    time = event.pop("timestamp")
    clean = {"timestamp": time, **_plain(redact(event))}
    first = {name: clean.pop(name) for name in FIRST_FIELDS}
    return {**first, **clean}


def _plain(value: Any) -> Any:
    """Convert a value to types of JSON. Of bytes only their number is shown: they may be a ciphertext or a file."""
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
    # ASCII only, so that the line contains no line separators and no broken characters.
    return json.dumps(event, ensure_ascii=True)


def _escape_controls(_: Any, __: str, event: EventDict) -> EventDict:
    """Escape control characters: a value must neither start a new line nor control the terminal."""
    escaped = dict(event)
    for name, value in event.items():
        if isinstance(value, str):
            pattern = _CONTROL_BUT_LINES if name in _MULTILINE_FIELDS else _CONTROL
            escaped[name] = pattern.sub(lambda found: found[0].encode("unicode_escape").decode(), value)
    return escaped


def _log_uncaught(
    kind: type[BaseException], error: BaseException | None, traceback: TracebackType | None, **fields: Any
) -> None:
    if issubclass(kind, KeyboardInterrupt):
        return
    exc_info: ExcInfo | bool = (kind, error, traceback) if error is not None else False
    structlog.get_logger(__name__).critical("UNCAUGHT_EXCEPTION", exc_info=exc_info, kind=kind.__name__, **fields)


def _log_thread_end(end: threading.ExceptHookArgs) -> None:
    if not issubclass(end.exc_type, SystemExit):
        thread = end.thread.name if end.thread else "unknown"
        _log_uncaught(end.exc_type, end.exc_value, end.exc_traceback, thread=thread)
