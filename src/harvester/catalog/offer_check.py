"""The nightly look whether offers still equal the slow truth over prices, for some sources each time."""

import structlog

from harvester.catalog import offers, search_index
from harvester.catalog.models import Source
from harvester.engine.job import RunningJob
from harvester.engine.registry import job_kind, periodic
from harvester.kernel.retry import RetryPolicy
from harvester.ops import alerts

log = structlog.get_logger(__name__)

CHECK_OFFERS = "catalog.check_offers"
#: Each look reads every price of a source; by chance, every source is looked at sooner or later.
SOURCES_EACH_NIGHT = 5
#: Wrong offers of a source that are named; one is enough to look into it.
MOST_NAMED = 20
_BODY = (
    "{count} or more offers differ from the newest price that may be read. Nothing was changed. The log names the "
    "products under OFFERS_DIFFER; this is a mistake in the code, please report it with the log."
)
RETRY = RetryPolicy(base=60.0, factor=3.0, attempts=3)


def register() -> None:
    job_kind(CHECK_OFFERS, queue="maintenance", retry=RETRY)(check_offers)
    periodic("nightly check of offers", kind=CHECK_OFFERS, cron="41 2 * * *")


def check_offers(job: RunningJob) -> dict[str, int]:
    """Compare the offers of some sources with what prices say.

    Nothing is repaired: a difference is a mistake in the code, and its traces help to find it.
    """
    picked = Source.objects.filter(last_promoted_at__isnull=False).order_by("?")[:SOURCES_EACH_NIGHT]
    wrong = 0
    for done, source in enumerate(picked):
        job.check()
        job.progress(done, SOURCES_EACH_NIGHT, note=source.name)
        wrong += _check(job, source)
    return {"sources": len(picked), "wrong_offers": wrong}


def _check(job: RunningJob, source: Source) -> int:
    if search_index.are_lacking(source.pk):
        # Its job is late or was cancelled; one that is at work finds nothing left to do.
        search_index.ask_for_words(source.pk)
    found = offers.differences(source.pk, most=MOST_NAMED)
    products = [product_id for _, product_id in found]
    key = f"offers_differ:{source.pk}"
    with job.transaction():
        if not found:
            alerts.resolve_alert(key, "The offers equal what the prices say again.")
            return 0
        log.error("OFFERS_DIFFER", source_id=str(source.pk), products=products, at_most=MOST_NAMED)
        alerts.raise_alert(
            "OFFERS_DIFFER",
            key,
            f"Offers of {source} are not what its prices say",
            _BODY.format(count=len(found)),
            severity="critical",
            detail={"source_id": str(source.pk), "products": products},
        )
    return len(found)
