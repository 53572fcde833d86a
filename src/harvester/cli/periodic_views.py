"""What `jobs periodic` reads, and how it looks. Needs Django."""

from typing import Any

from rich.console import RenderableType
from rich.text import Text

from harvester.cli.job_views import database_now
from harvester.cli.output import table, when
from harvester.engine.models import PeriodicJob

_SHOWN = ("name", "kind", "cron", "next_at", "last_at", "last_job_id")


def all_periodic() -> list[dict[str, Any]]:
    return list(PeriodicJob.objects.order_by("name").values(*_SHOWN))


def list_table(jobs: list[dict[str, Any]]) -> RenderableType:
    if not jobs:
        return Text("No periodic job is known yet; `harvester scheduler` makes them known when it starts.")
    now = database_now()
    rows = [
        (
            job["name"],
            job["kind"],
            job["cron"],
            when(job["next_at"], now),
            when(job["last_at"], now) or "never",
            job["last_job_id"],
        )
        for job in jobs
    ]
    return table(("name", "kind", "schedule (UTC)", "next", "last", "last job"), rows, right=("last job",))
