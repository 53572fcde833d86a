"""The dashboard: what needs attention, what is running, and the last 30 days; below it, the jobs."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from html import escape
from typing import Any, TypeVar, cast

from django.conf import settings
from django.contrib.admin import AdminSite
from django.core.cache import cache
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.utils import timezone
from django.utils.safestring import SafeString

from harvester.catalog import governance
from harvester.engine.models import Job
from harvester.engine.states import JobState
from harvester.feeds import attention
from harvester.feeds.attention import Need, NeedKind, Needs
from harvester.feeds.figures import HISTORY_DAYS, Day, past_days, today
from harvester.ops import job_figures
from harvester.ops.models import Alert
from harvester.portal.display import badge, duration, when
from harvester.portal.links import address
from harvester.portal.requests import is_fragment
from harvester.runs import queries
from harvester.runs.queries import DescribedRun
from harvester.runs.states import RunStatus
from harvester.scraping.shops import COVERED_BY_SHOPS, ShopNeeds, shop_needs
from harvester.scraping.states import RUN_KIND

Found = TypeVar("Found")
#: Named rows of each part; its list page has the rest.
ALERTS = 5
RUNS = 10
FAILURES = 6
STUCK = 6
#: However many dashboards are open, the database is queried no more often than this.
FEEDS_FRESH_SECONDS = 2.0
#: Jobs are further down the page, and counting very many of them takes time.
JOBS_FRESH_SECONDS = 5.0
DAYS_FRESH_SECONDS = 30.0
#: A slow query is cached for longer, so that it takes at most one twentieth of the time.
SHARE = 20


@dataclass(frozen=True, kw_only=True)
class FeedFigures:
    """Feeds at one moment.

    Attributes:
        statuses: number of feeds in each status.
        needs: what needs attention.
        alerts: the newest open alerts about anything else.
        alert_count: number of these alerts.
        running: runs in progress, each with its job.
        days: the last 30 days, oldest first.
        shops: shops that need attention.
    """

    statuses: dict[str, int]
    needs: list[Needs]
    alerts: list[Alert]
    alert_count: int
    running: list[tuple[DescribedRun, Job | None]]
    days: list[Day]
    shops: ShopNeeds


@dataclass(frozen=True, kw_only=True)
class JobFigures:
    """Jobs at one moment.

    Attributes:
        tally: number of jobs in each state, and figures of each queue.
        hours: jobs that ended in each of the last 24 hours.
        failures: the latest failed jobs.
        stuck: running jobs without a recent heartbeat, longest silence first.
        snapshot_seconds: age of the oldest open transaction.
    """

    tally: job_figures.Tally
    hours: list[dict[str, Any]]
    failures: list[Job]
    stuck: list[Job]
    snapshot_seconds: float


@dataclass(frozen=True, kw_only=True)
class Line:
    """A row that needs attention.

    Attributes:
        badge: the state or severity.
        title: name of the feed or alert.
        reason: one sentence.
        link: its page, if it has one.
        event: what happened or will happen at `at`.
    """

    badge: str
    title: str
    reason: str
    link: str | None
    event: str
    at: datetime | None

    def html(self) -> SafeString:
        """Return the row. There are dozens of them, and a template for each takes half of the page's time."""
        at = f'<span class="hv-need-at">{escape(self.event)} {when(self.at)}</span>' if self.at else ""
        inner = (
            f'<span class="hv-need-badge">{badge(self.badge)}</span><span class="hv-need-main"><strong>'
            f'{escape(self.title)}</strong><span class="hv-need-why">{escape(self.reason)}</span></span>{at}'
        )
        if self.link is None:
            return SafeString(f'<li><div class="hv-need">{inner}</div></li>')
        return SafeString(f'<li><a class="hv-need" href="{escape(self.link)}">{inner}</a></li>')


def page(site: AdminSite, request: HttpRequest, extra: dict[str, Any]) -> HttpResponse:
    context = {
        **_feeds_context(read_cached("portal.dashboard.feeds", FEEDS_FRESH_SECONDS, read_feeds)),
        **_jobs_context(read_cached("portal.dashboard.jobs", JOBS_FRESH_SECONDS, read_jobs)),
    }
    if is_fragment(request):
        return TemplateResponse(request, "portal/dashboard_body.html", context)
    shell = {**site.each_context(request), "title": "Dashboard"}
    return TemplateResponse(request, "portal/dashboard.html", {**shell, **context, **extra})


def read_cached(name: str, seconds: float, query: Callable[[], Found]) -> Found:
    """Return the result of a query from the cache that all open pages share, or run it."""
    known = cache.get(name)
    if known is not None:
        return cast("Found", known)
    started = time.monotonic()
    found = query()
    cache.set(name, found, max(seconds, SHARE * (time.monotonic() - started)))
    return found


def read_feeds() -> FeedFigures:
    others = (
        Alert.objects.filter(resolved_at=None)
        .exclude(kind__in=attention.COVERED_BY_NEEDS, key__contains=":feed:")
        .exclude(kind__in=COVERED_BY_SHOPS)
        .exclude(kind=governance.BLOCKED, key__endswith=f":{RUN_KIND}")
    )
    named = list(others.order_by("-id")[: ALERTS + 1])
    runs = queries.runs(queries.RunQuery(status=RunStatus.RUNNING, most=RUNS))
    jobs = Job.objects.defer("args", "result", "traceback").in_bulk([run.job_id for run in runs if run.job_id])
    return FeedFigures(
        statuses=attention.feeds_by_status(),
        needs=attention.needs(),
        alerts=named[:ALERTS],
        alert_count=others.count() if len(named) > ALERTS else len(named),
        running=[(each, jobs.get(each.run.job_id or 0)) for each in queries.described(runs)],
        days=read_cached(
            "portal.dashboard.days",
            DAYS_FRESH_SECONDS,
            lambda: [*past_days(HISTORY_DAYS - 1), today()],
        ),
        shops=shop_needs(),
    )


def read_jobs() -> JobFigures:
    failed = Job.objects.filter(state=JobState.FAILED, finished_at__isnull=False)
    return JobFigures(
        tally=job_figures.tally(),
        hours=job_figures.last_day(),
        failures=list(failed.defer("args", "result", "traceback").order_by("-finished_at")[:FAILURES]),
        stuck=job_figures.stuck(settings.CONFIG.stuck_seconds),
        snapshot_seconds=job_figures.oldest_snapshot_seconds(),
    )


def _feeds_context(figures: FeedFigures) -> dict[str, Any]:
    counts = sorted(figures.statuses.items(), key=lambda pair: -pair[1])
    needs = []
    for group in figures.needs:
        label, where, query = _MORE[group.kind]
        found = address(where)
        lines = [_need_line(need).html() for need in group.named]
        more_link = f"{found}{query}" if found else None
        needs.append({"lines": lines, "more": group.more, "more_label": label, "more_link": more_link})
    return {
        "needs": needs,
        "alert_lines": [
            Line(
                badge=alert.severity,
                title=alert.title,
                reason=alert.body.splitlines()[0] if alert.body else "",
                link=address("alert", alert.pk),
                event="since",
                at=alert.opened_at,
            ).html()
            for alert in figures.alerts
        ],
        "shop_lines": [
            Line(
                badge=need.kind.value,
                title=need.shop,
                reason=need.reason,
                link=address("shop", need.source_id),
                event="since",
                at=need.at,
            ).html()
            for need in figures.shops.named
        ],
        "more_shops": figures.shops.more,
        "more_alerts": figures.alert_count - len(figures.alerts),
        "needs_count": sum(group.total for group in figures.needs) + figures.shops.total + figures.alert_count,
        "feed_count": sum(figures.statuses.values()),
        "feed_counts": ", ".join(f"{count:,} {status.lower()}" for status, count in counts if count),
        "feeds_link": address("feeds"),
        "running": [
            {
                "run": each.run,
                "title": each.subject_name or each.kind_label,
                "job": job,
                "link": address("run", each.run.no),
                "note": str((job.progress or {}).get("note") or "") if job and isinstance(job.progress, dict) else "",
            }
            for each, job in figures.running
        ],
        **_days_context(figures.days),
    }


_EVENTS = {
    NeedKind.DISABLED: "failed",
    NeedKind.FAILING: "failed",
    NeedKind.OFFERS_EXPIRED: "offers disappeared",
    NeedKind.EXPIRES_SOON: "offers disappear",
    NeedKind.NOT_VISIBLE: "promoted",
    NeedKind.LATE: "was due",
    NeedKind.DISAPPEARING: "offers disappear",
}
#: These link to the run; all others to the feed's page, where people can act.
_ABOUT_A_RUN = (NeedKind.HELD, NeedKind.FAILING)
#: What the rows that are not named are called, and the list that has them, with its filter.
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


def _need_line(need: Need) -> Line:
    run = address("run", need.run_no) if need.kind in _ABOUT_A_RUN and need.run_no else None
    disappeared = need.at is not None and need.at <= timezone.now()
    return Line(
        badge=need.kind.value,
        title=need.feed,
        reason=need.reason,
        link=run or address("feed", need.feed_id),
        event=_EVENTS.get(need.kind) or ("offers disappeared" if disappeared else "offers disappear"),
        at=need.at,
    )


def _days_context(days: list[Day]) -> dict[str, Any]:
    def total(name: str) -> int:
        return sum(getattr(day, name) for day in days)

    runs, failed = sum(map(total, ("promoted", "skipped", "held", "failed"))), total("failed")
    series = ("visible", "prices", "rejects", "promoted", "skipped", "held", "failed")
    return {
        "sums": [
            {"name": "visible", "title": "Visible offers", "count": days[-1].visible, "note": "now"},
            {"name": "prices", "title": "Prices written", "count": total("prices"), "note": f"{HISTORY_DAYS} days"},
            {"name": "runs", "title": "Runs", "count": runs, "note": f"{failed:,} failed"},
            {"name": "rejects", "title": "Rows rejected", "count": total("rejects"), "note": f"{HISTORY_DAYS} days"},
        ],
        # Drawn by overview.js.
        "days": {
            "labels": [f"{day.day:%d %b}" for day in days],
            **{name: [getattr(day, name) for day in days] for name in series},
        },
    }


def _jobs_context(figures: JobFigures) -> dict[str, Any]:
    states, queues, hours = figures.tally.states, figures.tally.queues, figures.hours
    oldest = max((queue.oldest_waiting_seconds for queue in queues), default=0.0)
    slow = figures.snapshot_seconds > job_figures.OLD_SNAPSHOT_SECONDS
    ends = ("succeeded", "failed", "cancelled")
    return {
        "no_jobs": not any(states.values()),
        "tiles": [{"state": state, "count": count} for state, count in states.items()],
        "queues": queues,
        "oldest_waiting": duration(oldest) if any(queue.waiting for queue in queues) else None,
        "failures": figures.failures,
        "stuck": figures.stuck[:STUCK],
        "stuck_count": len(figures.stuck),
        "old_snapshot": duration(figures.snapshot_seconds) if slow else None,
        # Drawn by portal.js.
        "chart": {
            "labels": [f"{hour['hour']:%H:%M}" for hour in hours],
            **{name: [hour[name] for hour in hours] for name in ends},
        },
        "chart_total": sum(hour[name] for hour in hours for name in ends),
    }
