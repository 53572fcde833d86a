"""Lists of jobs and of what happened to them."""

from collections.abc import Iterable
from typing import Any

from django.conf import settings
from django.contrib.admin import display
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.template.response import TemplateResponse
from django.urls import URLPattern, reverse
from django.utils import timezone
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.views.decorators.http import require_POST, require_safe

from harvester.engine.models import Job, JobEvent
from harvester.engine.registry import all_kinds
from harvester.engine.states import JobState
from harvester.feeds.display_names import subjects_of
from harvester.ops import job_figures
from harvester.portal.display import NOTHING, badge, progress, when, worker
from harvester.portal.filters import ChoicePill, TextPill
from harvester.portal.jobs import page
from harvester.portal.listing import KeysetChangeList
from harvester.portal.model_admin import PortalAdmin
from harvester.portal.navigation import job_tabs
from harvester.portal.requests import is_fragment

#: Enough for a glance; the list of all jobs has the rest.
RECENT = 20
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
    """Periodic jobs that succeeded are hidden, unless somebody asks for them or for something that they may be."""

    title = "Periodic"
    field = "periodic"

    def values(self) -> Iterable[tuple[str, str]]:
        return [("show", "Show those that succeeded")]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Job]) -> QuerySet[Job]:
        wanted = any(request.GET.get(name) for name in (self.field, "q", "kind", "queue", "state"))
        return queryset if wanted else queryset.exclude(**job_figures.periodic_done())


class JobChangeList(KeysetChangeList):
    """A page of jobs with the feeds that they are about."""

    def get_results(self, request: HttpRequest) -> None:
        super().get_results(request)
        _name_feeds(self.result_list)


def _name_feeds(jobs: Iterable[Any]) -> None:
    found = list(jobs)
    about = subjects_of([job.pk for job in found])
    for job in found:
        job.about = about.get(job.pk)


class JobAdmin(PortalAdmin):
    """All jobs, newest first."""

    mount = "jobs"
    title = "Jobs"
    page_keys = ("-id",)
    empty = "No jobs yet. `harvester demo` makes some."
    live_seconds = 3
    list_display = ("job", "state_badge", "detail", "queue", "attempts", "worker_name", "created", "ended")
    list_display_links = None
    numbers = ("attempts",)
    list_filter = (StatePill, QueuePill, KindPill, PeriodicPill)
    search_fields = ("kind__contains", "dedupe_key__contains", "worker__contains")
    search_help_text = "Search by id, kind, dedupe key or worker"

    def get_changelist(self, request: HttpRequest, **_: Any) -> type[KeysetChangeList]:  # noqa: ARG002
        return JobChangeList

    def get_queryset(self, request: HttpRequest) -> QuerySet[Job]:
        """Arguments, results and tracebacks may be large; lists show none of them."""
        return super().get_queryset(request).defer("args", "result", "traceback")

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Any], search_term: str
    ) -> tuple[QuerySet[Any], bool]:
        """A number is an id; anything else is looked for in kind, dedupe key and worker."""
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
            self.url("<row:job_id>/retry/", require_POST(page.retry), "retry"),
            self.url("<row:job_id>/cancel/", require_POST(page.cancel), "cancel"),
        ]

    def show(self, request: HttpRequest, job_id: int) -> HttpResponse:
        return page.show(self.admin_site, request, job_id)

    def recent(self, request: HttpRequest) -> HttpResponse:
        """The newest jobs at a glance: who has them, when they were last heard of, what went wrong."""
        newest = self.get_queryset(request).exclude(**job_figures.periodic_done()).order_by("-id")[:RECENT]
        about = f"The {RECENT} newest jobs, without periodic ones that succeeded."
        return self._monitor(request, about, list(newest), self.empty)

    def stuck(self, request: HttpRequest) -> HttpResponse:
        """Running jobs that nobody has heard of within the limit."""
        seconds = settings.CONFIG.stuck_seconds
        about = (
            f"Running jobs without a sign of life for {seconds:g} s. They are taken from their workers by themselves."
        )
        return self._monitor(request, about, job_figures.stuck(seconds), "No job is stuck.")

    def _monitor(self, request: HttpRequest, about: str, jobs: list[Job], empty: str) -> HttpResponse:
        _name_feeds(jobs)
        context = {
            **self.admin_site.each_context(request),
            "title": self.title,
            "view_tabs": job_tabs(request),
            "about": about,
            "jobs": jobs,
            "empty": empty,
        }
        template = "portal/jobs/monitor_rows.html" if is_fragment(request) else "portal/jobs/monitor.html"
        return TemplateResponse(request, template, context)

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
    hint = "id of a job"

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        wanted = self.get(self.field)
        if wanted and not (wanted.isascii() and wanted.isdigit()):
            return queryset.none()
        return super().queryset(request, queryset)


class JobEventAdmin(PortalAdmin):
    """What happened to jobs: the newest jobs first, and of each the latest event first."""

    mount = "job-events"
    title = "Jobs"
    # The table is indexed by job; by time it would have to be read whole.
    page_keys = ("-job_id", "-at", "-id")
    empty = "Nothing has happened yet."
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

    @display(description="What happened")
    def words(self, event: JobEvent) -> str | SafeString:
        return event.detail or NOTHING
