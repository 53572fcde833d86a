"""Decisions about a run over pages that was promoted: ignore it, or undo that."""

from uuid import UUID

from django.db import transaction

from harvester.catalog import ignored_runs
from harvester.kernel.actor import Actor
from harvester.runs.decisions import checked_reason
from harvester.runs.models import Run
from harvester.scraping.models import ScrapeTarget


@transaction.atomic
def ignore(actor: Actor, run_id: UUID, reason: str) -> int:
    """Hide the prices of a run; return the number of products that this changes. Needs: admin.

    Its pages are fetched in full again: "not modified" would confirm what is no longer believed.
    """
    count = ignored_runs.ignore_run(actor, run_id, checked_reason(reason))
    run = Run.objects.get(pk=run_id)
    written = ScrapeTarget.objects.filter(source_id=str(run.source_id), last_seen__run_no=run.no)
    written.update(last_seen=None, etag=None, last_modified=None)
    return count


def undo_ignore(actor: Actor, run_id: UUID) -> int:
    """Restore the prices of an ignored run; return the number of products that this changes. Needs: admin."""
    return ignored_runs.undo_ignore(actor, run_id)
