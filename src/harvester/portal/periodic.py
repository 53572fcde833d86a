"""Work that comes due by the clock."""

from django.contrib.admin import display
from django.urls import reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString

from harvester.engine.models import PeriodicJob
from harvester.portal.display import NOTHING, when
from harvester.portal.model_admin import PortalAdmin


class PeriodicJobAdmin(PortalAdmin):
    mount = "periodic-jobs"
    title = "Periodic jobs"
    page_keys = ("name",)
    empty = "No periodic job is known yet; `harvester scheduler` makes them known when it starts."
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
