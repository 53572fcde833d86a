"""The upper half of the dashboard: feeds, runs and alerts, from what needs somebody to how the month has been."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.utils import timezone

from harvester.engine.models import Job
from harvester.feeds import attention, daily_figures
from harvester.feeds.attention import AtWork, Need, NeedKind, Needs
from harvester.ops.models import Alert
from harvester.portal.attention_lines import Line, drawn
from harvester.portal.links import address
from harvester.portal.shared_reads import shared

#: Days of the charts, this one included.
DAYS = 30
#: Open alerts that are named; the list has the rest.
ALERTS = 5
RUNS = 10
#: However many dashboards are open, the database is asked no more often than this; about the month, hardly ever.
FRESH_SECONDS = 2.0
DAYS_FRESH_SECONDS = 30.0


@dataclass(frozen=True, kw_only=True)
class Glance:
    """Feeds at a moment.

    Attributes:
        statuses: number of feeds in each status.
        needs: what somebody should look at.
        alerts: the newest open alerts that tell something else.
        alert_count: how many of these there are.
        at_work: runs that go on, each with its job.
        days: the month, oldest day first.
    """

    statuses: dict[str, int]
    needs: list[Needs]
    alerts: list[Alert]
    alert_count: int
    at_work: list[tuple[AtWork, Job | None]]
    days: list[daily_figures.Day]


def latest() -> Glance:
    return shared("portal.dashboard.feeds", FRESH_SECONDS, take)


def take() -> Glance:
    others = Alert.objects.filter(resolved_at=None).exclude(kind__in=attention.TOLD_BY_NEEDS)
    named = list(others.order_by("-id")[: ALERTS + 1])
    runs = attention.at_work(RUNS)
    jobs = Job.objects.defer("args", "result", "traceback").in_bulk([run.job_id for run in runs if run.job_id])
    return Glance(
        statuses=attention.feeds_by_status(),
        needs=attention.needs(),
        alerts=named[:ALERTS],
        alert_count=others.count() if len(named) > ALERTS else len(named),
        at_work=[(run, jobs.get(run.job_id or 0)) for run in runs],
        days=shared("portal.dashboard.days", DAYS_FRESH_SECONDS, _month),
    )


def _month() -> list[daily_figures.Day]:
    return [*daily_figures.past_days(DAYS - 1), daily_figures.today()]


def words(now: Glance) -> dict[str, Any]:
    total = sum(each.total for each in now.needs) + now.alert_count
    return {
        "needs": [{"lines": [drawn(_line(need)) for need in each.named], **_rest(each)} for each in now.needs],
        "alert_lines": [drawn(_alert_line(alert)) for alert in now.alerts],
        "more_alerts": now.alert_count - len(now.alerts),
        "needs_count": total,
        "feed_count": sum(now.statuses.values()),
        "feed_words": _statuses(now.statuses),
        "feeds_link": address("feeds"),
        "at_work": [_run_line(run, job) for run, job in now.at_work],
        "sums": list(_sums(now.days)),
        "days": _series(now.days),
    }


def _statuses(counts: dict[str, int]) -> str:
    many_first = sorted(counts.items(), key=lambda pair: -pair[1])
    return ", ".join(f"{count:,} {status.lower()}" for status, count in many_first if count)


_HAPPENS = {
    NeedKind.DISABLED: "failed",
    NeedKind.FAILING: "failed",
    NeedKind.OFFERS_EXPIRED: "offers disappeared",
    NeedKind.EXPIRES_SOON: "offers disappear",
    NeedKind.NOT_VISIBLE: "promoted",
    NeedKind.LATE: "was due",
    NeedKind.DISAPPEARING: "offers disappear",
}
#: What the line is about has a page of its own; otherwise the feed's page is where something can be done.
_ABOUT_A_RUN = (NeedKind.HELD, NeedKind.FAILING)
#: What the rest is called, and the list that it is in, with its filter.
_MORE = {
    NeedKind.HELD: ("held runs", "runs", "?outcome=HELD"),
    NeedKind.DISABLED: ("disabled feeds", "feeds", "?status=DISABLED"),
    NeedKind.FAILING: ("failing feeds", "feeds", ""),
    NeedKind.OFFERS_EXPIRED: ("feeds whose offers expired", "feeds", ""),
    NeedKind.EXPIRES_SOON: ("feeds whose offers expire soon", "feeds", ""),
    NeedKind.NOT_VISIBLE: ("feeds whose offers are not visible", "feeds", ""),
    NeedKind.LATE: ("late feeds", "feeds", "?status=ENABLED"),
    NeedKind.HOST_KEY: ("host keys to approve", "feeds", ""),
    NeedKind.DISAPPEARING: ("feeds with offers that disappear", "feeds", ""),
}


def _line(need: Need) -> Line:
    run = address("run", need.run_no) if need.kind in _ABOUT_A_RUN and need.run_no else None
    return Line(
        word=need.kind.value,
        title=need.feed,
        reason=need.reason,
        link=run or address("feed", need.feed_id),
        happens=_HAPPENS.get(need.kind) or _disappearance(need.at),
        at=need.at,
    )


def _disappearance(at: datetime | None) -> str:
    return "offers disappeared" if at and at <= timezone.now() else "offers disappear"


def _rest(each: Needs) -> dict[str, Any]:
    words_for_it, where, query = _MORE[each.kind]
    found = address(where)
    return {"more": each.more, "more_words": words_for_it, "more_link": f"{found}{query}" if found else None}


def _alert_line(alert: Alert) -> Line:
    return Line(
        word=alert.severity,
        title=alert.title,
        reason=alert.body.splitlines()[0] if alert.body else "",
        link=address("alert", alert.pk),
        happens="since",
        at=alert.opened_at,
    )


def _run_line(run: AtWork, job: Job | None) -> dict[str, Any]:
    return {
        "run": run,
        "job": job,
        "link": address("run", run.run_no) or (address("job", run.job_id) if run.job_id else None),
        "note": str((job.progress or {}).get("note") or "") if job and isinstance(job.progress, dict) else "",
    }


def _sums(month: list[daily_figures.Day]) -> Iterator[dict[str, Any]]:
    runs = sum(day.promoted + day.skipped + day.held + day.failed for day in month)
    failed = sum(day.failed for day in month)
    yield {"name": "visible", "title": "Offers visible", "count": month[-1].visible, "note": "now"}
    yield {"name": "prices", "title": "Prices written", "count": sum(day.prices for day in month), "note": "30 days"}
    yield {"name": "runs", "title": "Runs", "count": runs, "note": f"{failed:,} failed"}
    yield {"name": "rejects", "title": "Rows rejected", "count": sum(day.rejects for day in month), "note": "30 days"}


def _series(month: list[daily_figures.Day]) -> dict[str, Any]:
    """What the page's script draws."""
    names = ("visible", "prices", "rejects", "promoted", "skipped", "held", "failed")
    return {
        "labels": [f"{day.day:%d %b}" for day in month],
        **{name: [getattr(day, name) for day in month] for name in names},
    }
