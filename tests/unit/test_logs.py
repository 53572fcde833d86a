"""Every record is one line without secrets, regardless of its source and its errors."""

import datetime as dt
import io
import json
import logging
import subprocess
import sys
import textwrap
import threading
import warnings
from decimal import Decimal
from uuid import UUID

import pytest
import structlog
from gunicorn.config import Config as GunicornConfig

from harvester.cli.portal_server import PortalLogger
from harvester.guards.logs import _OneStream, bind, configure_logging, log_context
from harvester.guards.redaction import forget_all, remember

CANARY = "c4n4ry-0f-4-s3cr3t"


@pytest.fixture(autouse=True)
def logging_as_it_was():
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield
    structlog.contextvars.clear_contextvars()
    structlog.reset_defaults()
    logging.captureWarnings(capture=False)
    root.handlers[:] = handlers
    root.setLevel(level)
    forget_all()


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.fixture
def stream():
    return io.StringIO()


@pytest.fixture
def log(stream):
    configure_logging("debug", "json", stream=stream)
    return structlog.get_logger("harvester.test")


def records(stream):
    return [json.loads(line) for line in stream.getvalue().splitlines()]


def only_record(stream):
    (record,) = records(stream)
    return record


def test_an_event_is_one_line_of_json(log, stream):
    log.info("RUN_START", run_id=7, feed_id=UUID(int=1), ratio=0.5, ok=True, none=None, amount=Decimal("1.10"))
    record = only_record(stream)
    time = dt.datetime.fromisoformat(record.pop("timestamp"))
    assert time.utcoffset() == dt.timedelta(0)
    assert record == {
        "level": "info",
        "event": "RUN_START",
        "logger": "harvester.test",
        "run_id": 7,
        "feed_id": "00000000-0000-0000-0000-000000000001",
        "ratio": 0.5,
        "ok": True,
        "none": None,
        "amount": "1.10",
    }


@pytest.mark.parametrize("value", ["a\nb", "a\r\n{}", "a\u2028b", "a\x00\x1b[31mb", "lone " + chr(0xD800)])
def test_a_value_never_begins_a_line(log, stream, value):
    log.info("ROW_SKIPPED", title=value, **{value: 1})
    logging.getLogger("other").warning("said %s", value)
    lines = stream.getvalue().split("\n")
    assert len(lines) == 3
    assert lines[2] == ""
    assert stream.getvalue().isascii()
    assert records(stream)[0]["title"] == value
    assert records(stream)[1]["message"] == f"said {value}"


def test_values_that_json_does_not_know_are_logged_as_text(log, stream):
    log.info(
        "ODD",
        nan=float("nan"),
        endless=float("inf"),
        raw=b"\x01\x02\x03",
        when=dt.date(2026, 1, 2),
        many={("a", 1): {3}},
    )
    record = only_record(stream)
    assert record["nan"] == "nan"
    assert record["endless"] == "inf"
    assert record["raw"] == "<3 bytes>"
    assert record["when"] == "2026-01-02"
    assert record["many"] == {"('a', 1)": [3]}


def test_less_severe_events_are_left_out(stream):
    configure_logging("warning", "json", stream=stream)
    structlog.get_logger("a").info("QUIET")
    logging.getLogger("b").info("quiet")
    structlog.get_logger("a").warning("LOUD")
    logging.getLogger("b").warning("loud")
    assert [record.get("message", record["event"]) for record in records(stream)] == ["LOUD", "loud"]


def test_the_last_configuration_counts(stream):
    first = io.StringIO()
    configure_logging("info", "json", stream=first)
    configure_logging("info", "json", stream=stream)
    structlog.get_logger("a").info("ONCE")
    assert first.getvalue() == ""
    assert only_record(stream)["event"] == "ONCE"


def test_context_is_bound_once_for_all_events_of_a_block(log, stream):
    bind(worker="w1")
    with log_context(job_id=5):
        log.info("INSIDE")
        logging.getLogger("django.request").error("also inside")
    structlog.contextvars.unbind_contextvars("worker")
    log.info("OUTSIDE")
    inside, also_inside, outside = records(stream)
    assert (inside["worker"], inside["job_id"]) == ("w1", 5)
    assert (also_inside["worker"], also_inside["job_id"]) == ("w1", 5)
    assert not {"worker", "job_id"} & outside.keys()


def test_context_of_one_thread_does_not_reach_another(log, stream):
    with log_context(job_id=5):
        other = threading.Thread(target=lambda: log.info("OTHER"))
        other.start()
        other.join()
    assert "job_id" not in only_record(stream)


def test_a_secret_field_is_hidden_wherever_it_is_nested(log, stream):
    log.info("LOGIN", password=CANARY, request={"headers": [("Authorization", f"Bearer {CANARY}")], "user": "ann"})
    record = only_record(stream)
    assert record["password"] == "[redacted]"
    assert record["request"] == {"headers": [["Authorization", "[redacted]"]], "user": "ann"}


def test_a_bound_secret_is_hidden(log, stream):
    with log_context(api_key=CANARY, url=f"https://user:{CANARY}@host/path"):
        log.info("FETCHED")
    assert CANARY not in stream.getvalue()
    assert only_record(stream)["url"] == "https://[redacted]@host/path"


def _raise_with_canary():
    inner = ConnectionError("login failed for sftp://bob:" + CANARY + "@host")
    raise RuntimeError("gave up, password=" + CANARY) from inner


def test_tracebacks_are_redacted(log, stream):
    try:
        _raise_with_canary()
    except RuntimeError:
        log.exception("RUN_FAILED")
        logging.getLogger("django.request").exception("Internal Server Error: %s", "/feeds/")
        log.warning("AGAIN", exc_info=True)
        logging.getLogger("x").error("stack", stack_info=True)
    assert CANARY not in stream.getvalue()
    ours, djangos, again, with_stack = records(stream)
    for record in (ours, djangos, again):
        assert "_raise_with_canary" in record["exception"]
        assert "RuntimeError: gave up, password=[redacted]" in record["exception"]
        assert "sftp://[redacted]@host" in record["exception"]
    assert "test_tracebacks_are_redacted" in with_stack["stack_info"]


def test_an_opened_credential_is_hidden_even_in_a_plain_sentence(log, stream):
    remember(CANARY)
    log.info("SERVER_SAID", banner=f"530 user bob may not use {CANARY} here", raw=CANARY.encode())
    logging.getLogger("paramiko").warning("Auth banner: %s", CANARY)
    assert CANARY not in stream.getvalue()
    assert records(stream)[0]["banner"] == "530 user bob may not use [redacted] here"


@pytest.mark.parametrize("name", ["django", "django.request", "django.server", "gunicorn.error", "psycopg"])
def test_loggers_that_had_handlers_of_their_own_print_nowhere_else(stream, name, capfd):
    library = logging.getLogger(name)
    library.addHandler(logging.StreamHandler(sys.stderr))
    library.propagate = False
    configure_logging("info", "json", stream=stream)
    library.error("token=%s", CANARY)
    assert only_record(stream)["message"] == "token=[redacted]"
    assert capfd.readouterr() == ("", "")


def test_fields_given_to_the_standard_library_are_kept_and_redacted(log, stream):
    logging.getLogger("django.request").warning("Not Found", extra={"status_code": 404, "session": CANARY})
    record = only_record(stream)
    assert record["status_code"] == 404
    assert record["session"] == "[redacted]"


def test_objects_are_logged_as_their_text(log, stream):
    class Request:
        def __str__(self):
            return f"<Request '/login?token={CANARY}&next=/'>"

    logging.getLogger("library").warning("Bad Request", extra={"about": Request()})
    assert only_record(stream)["about"] == "<Request '/login?token=[redacted]&next=/'>"


class Unprintable:
    def __str__(self):
        raise RuntimeError(CANARY)

    __repr__ = __str__


def test_a_record_that_cannot_be_printed_becomes_a_line_that_says_so(log, stream, capfd):
    # Pytest's own handler raises what a handler should keep to itself.
    root = logging.getLogger()
    root.handlers[:] = [handler for handler in root.handlers if isinstance(handler, _OneStream)]
    logging.getLogger("careless").warning("%d items", CANARY)
    logging.getLogger("careless").warning("%s", Unprintable())
    log.info("ODD", field=Unprintable())
    first, second, third = records(stream)
    assert first["event"] == second["event"] == "LOG_RECORD_UNPRINTABLE"
    assert (first["logger"], first["problem"]) == ("careless", "TypeError")
    assert third["field"] == "[unprintable Unprintable]"
    assert CANARY not in stream.getvalue()
    assert capfd.readouterr() == ("", "")


def test_a_broken_stream_does_not_stop_the_work(log, stream, capfd):
    stream.close()
    log.info("LOST")
    logging.getLogger("x").error("lost")
    assert capfd.readouterr() == ("", "")


def test_statements_and_their_parameters_are_not_logged_even_in_debug(log, stream):
    logging.getLogger("django.db.backends").debug("UPDATE x SET y = %s", CANARY)
    assert stream.getvalue() == ""


def test_warnings_are_logged(stream):
    with warnings.catch_warnings():
        warnings.simplefilter("default")
        configure_logging("info", "json", stream=stream)
        warnings.warn("password=" + CANARY, UserWarning, stacklevel=1)
    assert "UserWarning: password=[redacted]" in only_record(stream)["message"]


def test_gunicorn_logs_the_same_way(log, stream, capfd):
    gunicorn = PortalLogger(GunicornConfig())
    gunicorn.info("Listening at: %s", f"http://bob:{CANARY}@127.0.0.1:8000")
    gunicorn.access_log.info("%s", f'127.0.0.1 "GET /feeds/?token={CANARY} HTTP/1.1" 200')
    listening, access = records(stream)
    assert listening["message"] == "Listening at: http://[redacted]@127.0.0.1:8000"
    assert access["message"] == '127.0.0.1 "GET /feeds/?token=[redacted] HTTP/1.1" 200'
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize(
    ("log_format", "stream", "is_json"),
    [
        ("auto", io.StringIO(), True),
        ("auto", Terminal(), False),
        ("json", Terminal(), True),
        ("console", io.StringIO(), False),
    ],
)
def test_a_terminal_gets_lines_for_people(log_format, stream, is_json):
    configure_logging("info", log_format, stream=stream)
    structlog.get_logger("a").info("RUN_START", run_id=7)
    line = stream.getvalue()
    assert line.startswith("{") is is_json
    assert "RUN_START" in line


def test_on_a_terminal_values_neither_break_lines_nor_steer_it():
    stream = Terminal()
    configure_logging("info", "console", stream=stream)
    structlog.get_logger("a").info("ROW", title="x\nFORGED\r\x1b[2J\x9b31m\u202e", token=CANARY)
    logging.getLogger("b").info("said\nFORGED\x1b[2J")
    lines = stream.getvalue().splitlines()
    assert len(lines) == 2
    assert r"x\nFORGED\r\x1b[2J\x9b31m\u202e" in lines[0]
    assert r"said\nFORGED\x1b[2J" in lines[1]
    assert CANARY not in stream.getvalue()


def _raise_near_canary():
    local_value = CANARY
    raise ValueError("\x1b[2J" + "boom" * len(local_value[:1]))


def test_on_a_terminal_a_traceback_keeps_its_lines_and_shows_no_local_values():
    stream = Terminal()
    configure_logging("info", "console", stream=stream)
    try:
        _raise_near_canary()
    except ValueError:
        structlog.get_logger("a").exception("RUN_FAILED")
    assert "Traceback (most recent call last):\n" in stream.getvalue()
    assert r"ValueError: \x1b[2Jboom" in stream.getvalue()
    assert CANARY not in stream.getvalue()


def run_uncaught(body):
    program = f"""
import sys, threading, time
from harvester.guards.logs import configure_logging, log_uncaught
configure_logging("info", "json")
log_uncaught()
CANARY = {CANARY!r}
{textwrap.dedent(body)}
"""
    return subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False, timeout=60)


def test_what_ends_the_process_is_logged_without_secrets():
    ended = run_uncaught("raise ValueError('password=' + CANARY)")
    record = json.loads(ended.stderr)
    assert ended.returncode == 1
    assert (record["event"], record["level"], record["kind"]) == ("UNCAUGHT_EXCEPTION", "critical", "ValueError")
    assert "ValueError: password=[redacted]" in record["exception"]
    assert CANARY not in ended.stderr


def test_what_ends_a_thread_is_logged_without_secrets():
    ended = run_uncaught("""
        def work(): raise ValueError('password=' + CANARY)
        thread = threading.Thread(target=work, name="beat")
        thread.start(); thread.join()
        quiet = threading.Thread(target=sys.exit)
        quiet.start(); quiet.join()
    """)
    record = json.loads(ended.stderr)
    assert (record["event"], record["thread"]) == ("UNCAUGHT_EXCEPTION", "beat")
    assert CANARY not in ended.stderr


def test_what_fails_in_a_finaliser_is_logged_without_secrets():
    ended = run_uncaught("""
        class Bad:
            def __del__(self): raise ValueError('password=' + CANARY)
        Bad()
    """)
    assert json.loads(ended.stderr)["event"] == "UNCAUGHT_EXCEPTION"
    assert CANARY not in ended.stderr


def test_an_interrupt_by_the_user_prints_no_traceback():
    ended = run_uncaught("raise KeyboardInterrupt")
    assert ended.returncode != 0
    assert ended.stderr == ""


def test_what_a_library_says_has_a_constant_name_and_no_request(log, stream):
    request = object()
    logging.getLogger("django.request").warning(
        "Not Found: %s", "/nope", extra={"request": request, "status_code": 404}
    )
    record = only_record(stream)
    assert (record["event"], record["message"], record["status_code"]) == ("LIBRARY_MESSAGE", "Not Found: /nope", 404)
    assert "request" not in record


def test_a_host_that_is_not_allowed_is_one_line_without_what_was_sent(log, stream):
    problem = ValueError("Invalid HTTP_HOST header: 'evil'")
    logging.getLogger("django.security.DisallowedHost").error("Invalid HTTP_HOST header: 'evil'", exc_info=problem)
    record = only_record(stream)
    assert (record["event"], record["level"]) == ("HOST_NOT_ALLOWED", "warning")
    assert "evil" not in str(record)
    assert "exception" not in record
