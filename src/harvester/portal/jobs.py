"""Jobs: lists, the page of one job, job events and periodic jobs."""

from collections.abc import Iterable
from typing import Any

from django.conf import settings
from django.contrib.admin import display
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import get_object_or_404, redirect
from django.urls import URLPattern, reverse
from django.utils import timezone
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.views.decorators.http import require_POST, require_safe

from harvester.engine.models import Job, JobEvent, PeriodicJob
from harvester.engine.registry import all_kinds
from harvester.engine.states import ENDED, OPEN, JobState
from harvester.feeds.display_names import subjects_of
from harvester.ops import job_figures, jobs
from harvester.ops.models import Role
from harvester.portal.display import NOTHING, badge, pretty, progress, span, when, worker
from harvester.portal.filters import ChoicePill, TextPill
from harvester.portal.listing import KeysetChangeList
from harvester.portal.model_admin import PortalAdmin
from harvester.portal.navigation import job_tabs
from harvester.portal.requests import attempt, is_fragment, may, require

#: Jobs of the view Recent; the list of all jobs has the rest.
RECENT = 20
#: Events on the page of a job; the list of events has the rest.
EVENTS = 100
LARGEST_ID = 2**63 - 1


class StatePill(ChoicePill):
    title = "State"
    field = "state"

    def values(self) -> Iterable[tuple[str, str]]:
        return [(state.value, state.value.capitalize()) for state in JobState]


class QueuePill(ChoicePill):
    title = "Queue"
    field = "queue"

    def values(self) -> Iterable[tuple[str, str]]:
        known = {kind.queue for kind in all_kinds().values()} | set(job_figures.open_queues())
        return [(queue, queue) for queue in sorted(known)]


class KindPill(ChoicePill):
    title = "Kind"
    field = "kind"

    def values(self) -> Iterable[tuple[str, str]]:
        return [(kind, kind) for kind in sorted(all_kinds())]


class PeriodicPill(ChoicePill):
    """Periodic jobs that succeeded are hidden, unless this or another filter asks for them."""

    title = "Periodic"
    field = "periodic"

    def values(self) -> Iterable[tuple[str, str]]:
        return [("show", "Show succeeded")]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Job]) -> QuerySet[Job]:
        wanted = any(request.GET.get(name) for name in (self.field, "q", "kind", "queue", "state"))
        return queryset if wanted else queryset.exclude(**job_figures.periodic_done())


class JobChangeList(KeysetChangeList):
    """A page of jobs with the names of their feeds."""

    def get_results(self, request: HttpRequest) -> None:
        super().get_results(request)
        _name_feeds(self.result_list)


def _name_feeds(jobs: Iterable[Any]) -> None:
    found = list(jobs)
    about = subjects_of([job.pk for job in found])
    for job in found:
        job.about = about.get(job.pk)


class JobAdmin(PortalAdmin):
    mount = "jobs"
    title = "Jobs"
    page_keys = ("-id",)
    empty = "No jobs yet. Run `harvester demo` to create some."
    live_seconds = 3
    list_display = ("job", "state_badge", "detail", "queue", "attempts", "worker_name", "created", "ended")
    list_display_links = None
    numbers = ("attempts",)
    list_filter = (StatePill, QueuePill, KindPill, PeriodicPill)
    search_fields = ("kind__contains", "dedupe_key__contains", "worker__contains")
    search_help_text = "Search by ID, kind, dedupe key or worker"

    def get_changelist(self, request: HttpRequest, **_: Any) -> type[KeysetChangeList]:  # noqa: ARG002
        return JobChangeList

    def get_queryset(self, request: HttpRequest) -> QuerySet[Job]:
        """Return jobs without arguments, results and tracebacks, which may be large."""
        return super().get_queryset(request).defer("args", "result", "traceback")

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Any], search_term: str
    ) -> tuple[QuerySet[Any], bool]:
        """Search a number as an ID, and anything else in kind, dedupe key and worker."""
        term = search_term.strip().removeprefix("#")
        if term.isascii() and term.isdigit() and int(term) <= LARGEST_ID:
            by_id = queryset.filter(id=int(term))
            if by_id.exists():
                return by_id, False
        return super().get_search_results(request, queryset, search_term)

    def changelist_view(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponseBase:
        return super().changelist_view(request, {"view_tabs": job_tabs(request), **(extra_context or {})})

    def page_urls(self) -> list[URLPattern]:
        return [
            self.url("recent/", require_safe(self.recent), "recent"),
            self.url("stuck/", require_safe(self.stuck), "stuck"),
            self.url("<row:job_id>/", require_safe(self.show), "change"),
            self.url("<row:job_id>/retry/", require_POST(self.retry), "retry"),
            self.url("<row:job_id>/cancel/", require_POST(self.cancel), "cancel"),
        ]

    def show(self, request: HttpRequest, job_id: int) -> HttpResponse:
        job = get_object_or_404(Job, pk=job_id)
        took = None
        if job.started_at and job.finished_at and job.state in ENDED:
            took = span(max(0.0, (job.finished_at - job.started_at).total_seconds()))
        operator = may(request, Role.OPERATOR)
        context = {
            "title": f"Job {job.pk}",
            "job": job,
            "about": subjects_of([job.pk]).get(job.pk),
            "args": pretty(job.args),
            "result": pretty(job.result) if job.result is not None else None,
            "took": took,
            "waits_for": job_figures.snooze_reason(job),
            "events": list(JobEvent.objects.filter(job_id=job.pk).order_by("-at", "-id")[:EVENTS]),
            "most_events": EVENTS,
            "live": job.state in OPEN,
            "may_retry": operator and job.state in (JobState.FAILED, JobState.CANCELLED, JobState.RETRYABLE),
            "starts_again": jobs.starts_again(job.kind, job.state),
            "may_cancel": operator and job.state in OPEN and not job.cancel_requested_at,
            "operator": operator,
        }
        template = "portal/jobs/job_body.html" if is_fragment(request) else "portal/jobs/job.html"
        return self.render(request, template, context)

    def retry(self, request: HttpRequest, job_id: int) -> HttpResponse:
        actor, shown = require(request, Role.OPERATOR), job_id

        def verb() -> str:
            nonlocal shown
            shown = jobs.retry(actor, job_id)
            if shown != job_id:
                return f"Job {shown} starts a new run. Job {job_id} and its run are unchanged."
            return f"Job {job_id} is queued again with all its attempts."

        attempt(request, verb)
        return redirect("admin:engine_job_change", shown)

    def cancel(self, request: HttpRequest, job_id: int) -> HttpResponse:
        actor = require(request, Role.OPERATOR)

        def verb() -> str:
            if jobs.cancel(actor, job_id) == JobState.CANCELLED:
                return f"Job {job_id} is cancelled."
            return f"Job {job_id} was asked to stop. It ends at its next check."

        attempt(request, verb)
        return redirect("admin:engine_job_change", job_id)

    def recent(self, request: HttpRequest) -> HttpResponse:
        newest = self.get_queryset(request).exclude(**job_figures.periodic_done()).order_by("-id")[:RECENT]
        about = f"The {RECENT} newest jobs, without successful periodic jobs."
        return self._monitor(request, about, list(newest), self.empty)

    def stuck(self, request: HttpRequest) -> HttpResponse:
        seconds = settings.CONFIG.stuck_seconds
        about = f"Running jobs without a heartbeat for {seconds:g} s. Harvester takes them from their workers."
        return self._monitor(request, about, job_figures.stuck(seconds), "No stuck jobs.")

    def _monitor(self, request: HttpRequest, about: str, jobs: list[Job], empty: str) -> HttpResponse:
        _name_feeds(jobs)
        context = {"title": self.title, "view_tabs": job_tabs(request), "about": about, "jobs": jobs, "empty": empty}
        template = "portal/jobs/monitor_rows.html" if is_fragment(request) else "portal/jobs/monitor.html"
        return self.render(request, template, context)

    @display(description="Job")
    def job(self, job: Any) -> SafeString:
        link = reverse("admin:engine_job_change", args=[job.pk])
        feed = format_html(' <span class="hv-note">{}</span>', job.about.name) if job.about else ""
        return format_html(
            '<a class="hv-job" id="job-{}" href="{}">'
            '<span class="hv-kind">{}</span> <span class="hv-id">#{}</span></a>{}',
            *(job.pk, link, job.kind, job.pk, feed),
        )

    @display(description="State")
    def state_badge(self, job: Job) -> SafeString:
        return badge(job.state)

    @display(description="Attempt")
    def attempts(self, job: Job) -> str:
        return f"{job.attempt}/{job.max_attempts}"

    @display(description="Progress or error")
    def detail(self, job: Job) -> SafeString:
        if job.error and job.state in (JobState.FAILED, JobState.RETRYABLE):
            return format_html('<span class="hv-cut" title="{0}">{0}</span>', job.error)
        if job.state == JobState.PENDING and job.run_at > timezone.now():
            return format_html('<span class="hv-note">due {}</span>', when(job.run_at))
        return progress(job)

    @display(description="Worker")
    def worker_name(self, job: Job) -> SafeString:
        return worker(job.worker)

    @display(description="Created")
    def created(self, job: Job) -> SafeString:
        return when(job.created_at)

    @display(description="Ended")
    def ended(self, job: Job) -> SafeString:
        return when(job.finished_at)


class JobIdPill(TextPill):
    title = "Job"
    field = "job_id"
    hint = "job ID"

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        wanted = self.get(self.field)
        if wanted and not (wanted.isascii() and wanted.isdigit()):
            return queryset.none()
        return super().queryset(request, queryset)


class JobEventAdmin(PortalAdmin):
    """Events of jobs: the newest job first, and its latest event first."""

    mount = "job-events"
    title = "Jobs"
    # The table has an index by job and none by time.
    page_keys = ("-job_id", "-at", "-id")
    empty = "No events yet."
    list_display = ("job", "moment", "state_badge", "which_attempt", "worker_name", "words")
    list_display_links = None
    numbers = ("which_attempt",)
    list_filter = (JobIdPill,)

    def changelist_view(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponseBase:
        return super().changelist_view(request, {"view_tabs": job_tabs(request), **(extra_context or {})})

    @display(description="Job")
    def job(self, event: JobEvent) -> SafeString:
        link = reverse("admin:engine_job_change", args=[event.job_id])
        return format_html('<a class="hv-job" href="{}"><span class="hv-id">#{}</span></a>', link, event.job_id)

    @display(description="When")
    def moment(self, event: JobEvent) -> SafeString:
        return when(event.at)

    @display(description="State")
    def state_badge(self, event: JobEvent) -> SafeString:
        return badge(event.state)

    @display(description="Worker")
    def worker_name(self, event: JobEvent) -> SafeString:
        return worker(event.worker)

    @display(description="Attempt")
    def which_attempt(self, event: JobEvent) -> int | SafeString:
        return event.attempt or NOTHING

    @display(description="Details")
    def words(self, event: JobEvent) -> str | SafeString:
        return event.detail or NOTHING


class PeriodicJobAdmin(PortalAdmin):
    mount = "periodic-jobs"
    title = "Periodic jobs"
    page_keys = ("name",)
    empty = "No periodic jobs yet. `harvester scheduler` registers them when it starts."
    live_seconds = 10
    list_display = ("name", "kind", "schedule", "next_time", "last_time", "last_job")
    list_display_links = None

    @display(description="Schedule (UTC)")
    def schedule(self, periodic: PeriodicJob) -> SafeString:
        return format_html("<code>{}</code>", periodic.cron)

    @display(description="Next")
    def next_time(self, periodic: PeriodicJob) -> SafeString:
        return when(periodic.next_at)

    @display(description="Last")
    def last_time(self, periodic: PeriodicJob) -> SafeString:
        return when(periodic.last_at)

    @display(description="Last job")
    def last_job(self, periodic: PeriodicJob) -> SafeString:
        if periodic.last_job_id is None:
            return NOTHING
        link = reverse("admin:engine_job_change", args=[periodic.last_job_id])
        return format_html('<a class="hv-id" href="{}">#{}</a>', link, periodic.last_job_id)
