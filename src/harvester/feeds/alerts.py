"""What people are told about feeds: one alert for each condition, with an end."""

from typing import Any

import structlog
from django.db import transaction

from harvester.catalog.models import Run
from harvester.feeds.models import Feed
from harvester.feeds.run_context import fields_of
from harvester.ops.alerts import raise_alert, resolve_alert
from harvester.pipeline.baseline import Baseline
from harvester.pipeline.gates import Verdict

log = structlog.get_logger(__name__)

#: Codes that mean a file, or what is in it, is larger than the feed allows.
LIMITS = (
    *("FILE_SIZE_LIMIT_EXCEEDED", "INFLATE_LIMIT_EXCEEDED", "ROW_COUNT_LIMIT_EXCEEDED"),
    "UNIQUE_PRODUCT_LIMIT_EXCEEDED",
)


def run_is_good(feed: Feed) -> None:
    """A run succeeded: whatever was wrong with running the feed is over."""
    for kind in ("RUN_FAILED", "LIMIT_EXCEEDED", "FEED_AUTO_DISABLED"):
        resolve_alert(_key(kind, feed), "A run of the feed succeeded.")


def feed_runs_again(feed: Feed) -> None:
    """Somebody re-enabled it; if it is disabled once more, that is news again."""
    resolve_alert(_key("FEED_AUTO_DISABLED", feed), "The feed was re-enabled.")  # mutant: enabled-again


def hold_is_over(feed: Feed, note: str) -> None:
    """The held run was decided, or a newer one took its place."""
    resolve_alert(_key("RUN_HELD", feed), note)


def run_has_failed(feed: Feed, run: Run, code: str, message: str) -> None:
    kind = "LIMIT_EXCEEDED" if code in LIMITS else "RUN_FAILED"
    _raise(kind, feed, f"{feed}: run {run.no} failed ({code})", message, run)  # mutant: failure-alert


def job_has_failed(feed: Feed, job_id: int, code: str, message: str) -> None:
    """The job of a run failed before it had a run that could tell of it."""
    title = f"{feed}: a run could not begin ({code})"
    body = f"{message}\nNothing was changed. `harvester jobs show {job_id}` has the details."
    detail = {"feed_id": str(feed.id), "job_id": job_id}
    raise_alert("RUN_FAILED", _key("RUN_FAILED", feed), title, body, severity="warning", detail=detail)


def run_is_held(feed: Feed, run: Run, verdict: Verdict, baseline: Baseline) -> None:
    reasons = "\n".join(f"{finding.gate}: {finding.reason}" for finding in verdict.holding)  # mutant: hold-alert
    if baseline.held_run_no:
        hold_is_over(feed, f"Run {run.no} is held in its place.")
    body = f"{reasons}\nNothing that consumers see has changed. Approve or reject the run."
    _raise("RUN_HELD", feed, f"{feed}: run {run.no} is held", body, run)


def feed_is_disabled(feed: Feed, failures: int, error: str) -> None:
    fields = {**fields_of(feed), "consecutive_failures": failures, "last_error": error}
    transaction.on_commit(lambda: log.warning("FEED_AUTO_DISABLED", **fields))
    body = f"{failures} runs in a row failed; the last one said: {error}\nMend the cause, then re-enable the feed."
    _raise("FEED_AUTO_DISABLED", feed, f"{feed}: disabled after {failures} failures", body)


def _raise(kind: str, feed: Feed, title: str, body: str, run: Run | None = None) -> None:
    detail: dict[str, Any] = {"feed_id": str(feed.id), "run_no": run.no if run else None}
    raise_alert(kind, _key(kind, feed), title, body, severity="warning", detail=detail)


def _key(kind: str, feed: Feed) -> str:
    return f"{kind}:feed:{feed.id}"
