"""Details of a run of a feed that the portal, the command line and the API show."""

from typing import Any, Final

from django.db import connection, transaction

from harvester.feeds.models import FeedRunSample
from harvester.pipeline.held_difference import read_summary, summarize
from harvester.runs.models import Run
from harvester.runs.states import RunOutcome

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
    """Return the sample rows of a run by code: all that were kept, or at most so many of each."""
    kept = FeedRunSample.objects.filter(run_id=run.pk)
    samples: dict[str, list[dict[str, Any]]] = {}
    for item in (kept if most is None else kept.filter(place__lt=most)).order_by("code", "place"):
        samples.setdefault(item.code, []).append({"line": item.line, "reason": item.reason, "row": item.row})
    return samples


def difference_of(run: Run) -> dict[str, Any] | None:
    """Return the summary of the changes of a run that is or was held; None for all others."""
    with transaction.atomic(), connection.cursor() as cursor:
        summary = read_summary(cursor, run.no)
        # Versions before this one kept the difference alone.
        if summary is None and run.outcome == RunOutcome.HELD and run.source_id is not None:
            summary = summarize(cursor, run.source_id, run.no)
    return summary
