"""What people want to know of a run, whoever shows it to them."""

from typing import Any, Final

from django.db import connection, transaction

from harvester.catalog.models import Run
from harvester.catalog.states import RunOutcome
from harvester.engine.models import Job
from harvester.feeds.decisions import REQUESTS
from harvester.feeds.models import FeedRunSample
from harvester.ops.models import AuditEvent
from harvester.pipeline.held_difference import read_told, tell

#: Figure -> what people call it, in the order in which they read it.
FIGURES: Final = {
    "download_bytes": "bytes downloaded",
    "rows_read": "rows read",
    "rows_parsed": "rows used",
    "products_rejected": "rows rejected",
    "duplicate_key_count": "duplicate rows",
    "products_upserted": "products",
    "products_new": "new",
    "products_changed": "changed",
    "products_back": "back",
    "products_missing": "missing",
    "would_expire_count": "would expire",
    "products_expired": "expired",
    "prices_due": "price changes",
    "prices_written": "prices written",
    "url_hash_fallback_count": "without ID or SKU",
    "identity_upgrades": "upgraded to a stronger ID",
    "error_count": "errors",
}


def samples_of(run: Run, most: int | None = None) -> dict[str, list[dict[str, Any]]]:
    """Code -> the first rows that were refused or looked odd for it; all that were kept, or so many of each."""
    kept = FeedRunSample.objects.filter(run_id=run.pk)
    samples: dict[str, list[dict[str, Any]]] = {}
    for item in (kept if most is None else kept.filter(place__lt=most)).order_by("code", "place"):
        samples.setdefault(item.code, []).append({"line": item.line, "reason": item.reason, "row": item.row})
    return samples


def difference_of(run: Run) -> dict[str, Any] | None:
    """What a run that is or was held would change; see `pipeline.held_difference`. None for all others."""
    with transaction.atomic(), connection.cursor() as cursor:
        told = read_told(cursor, run.no)
        # Versions before this one kept the difference alone.
        if told is None and run.outcome == RunOutcome.HELD and run.source_id is not None:
            told = tell(cursor, run.source_id, run.no)
    return told


def last_decision(run: Run) -> Job | None:
    """The job of what was last decided about a run, or asked for; none if nobody did, or if it was cleared away."""
    asked = AuditEvent.objects.filter(object_type="run", object_id=str(run.pk), verb__in=REQUESTS.values())
    latest = asked.order_by("-at", "-id").first()
    return Job.objects.filter(pk=latest.detail.get("job_id")).first() if latest else None
