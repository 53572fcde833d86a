"""The expected result of each run of the demo, compared with the real one. Needs Django."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from django.db import connection

from harvester.cli.demo.catalog import FIRST, HARBOUR, LEAVER, SECOND, SHRUNK, Edition
from harvester.cli.demo.shop import HARBOUR_STREET, KESTREL, Shop
from harvester.cli.job_views import details
from harvester.engine.states import JobState
from harvester.feeds.models import Feed, FeedRun
from harvester.kernel.errors import TerminalError
from harvester.runs.models import Run
from harvester.runs.states import RunOutcome

#: SKU -> price that consumers see.
Shown = Mapping[str, Decimal]

_SHOWN = """
SELECT coalesce(p.sku, p.item_id), v.amount FROM visible_offers v
JOIN source_products p ON p.source_id = v.source_id AND p.id = v.product_id
WHERE v.source_id = %s
"""
_HELD = """
SELECT count(*), count(*) FILTER (WHERE is_price), count(*) FILTER (WHERE is_missing)
FROM held_changes WHERE source_id = %s AND run_no = %s
"""


@dataclass(frozen=True, kw_only=True)
class Act:
    """One run of a feed.

    Attributes:
        title: what the partner sends.
        shop: the shop that sends it.
        edition: the catalog.
        wanted: the expected outcome.
        worker_dies: a worker is killed during the run.
    """

    title: str
    shop: Shop = KESTREL
    edition: Edition
    wanted: RunOutcome = RunOutcome.PROMOTED
    worker_dies: bool = False


ACTS = (
    Act(title="another shop with another network", shop=HARBOUR_STREET, edition=HARBOUR),
    Act(title="the whole catalog", edition=FIRST),
    Act(title="new prices, one product added, one removed", edition=SECOND, worker_dies=True),
    Act(title="one department only, by mistake", edition=SHRUNK, wanted=RunOutcome.HELD),
)


@dataclass(frozen=True, kw_only=True)
class Held:
    """The number of changes that wait for a decision."""

    changes: int
    prices: int
    missing: int


@dataclass(frozen=True, kw_only=True)
class Played:
    """A finished act.

    Attributes:
        act: the act.
        run: its run.
        figures: the counts of the run.
        held: the changes that wait for a decision.
        job: the job with its attempts.
        before: what consumers saw before the run.
        after: what they see now.
    """

    act: Act
    run: Run
    figures: FeedRun
    held: Held
    job: Mapping[str, Any]
    before: Shown
    after: Shown

    @property
    def reason(self) -> str:
        """Return why the run was held."""
        return " ".join(finding["reason"] for finding in self.run.verdict if finding["holds"])


def look_back(act: Act, feed: Feed, job_id: int, before: Shown) -> Played:
    """Collect the results of a job that has ended."""
    job = details(job_id)
    run = Run.objects.filter(job_id=job_id).first()
    if run is None:
        raise TerminalError(f"The demo failed: job {job_id} is {job['state']} and started no run.")
    with connection.cursor() as cursor:
        cursor.execute(_HELD, [feed.source_id, run.no])
        changes, prices, missing = cursor.fetchone()
    return Played(
        act=act,
        run=run,
        figures=FeedRun.objects.get(pk=run.pk),
        held=Held(changes=changes, prices=prices, missing=missing),
        job=job,
        before=before,
        after=shown(feed),
    )


def shown(feed: Feed) -> Shown:
    """Return what consumers see of the shop."""
    with connection.cursor() as cursor:
        cursor.execute(_SHOWN, [feed.source_id])
        return dict(cursor.fetchall())


def problems(played: Played) -> Iterator[str]:
    """Yield each difference between the expected and the real result."""
    act, run = played.act, played.run
    if run.outcome != act.wanted:
        why = run.error or played.reason
        yield f"it is {run.outcome or run.status} instead of {act.wanted}" + (f" ({why})" if why else "")
        return
    if played.figures.products_upserted != len(act.edition.products):
        yield f"it read {played.figures.products_upserted} products instead of {len(act.edition.products)}"
    if played.figures.rejects != act.edition.rejects:
        yield f"it rejected {played.figures.rejects} instead of {dict(act.edition.rejects)}"
    outcomes = [attempt["outcome"] for attempt in played.job["attempts"]]
    wanted = [JobState.RETRYABLE, JobState.SUCCEEDED] if act.worker_dies else [JobState.SUCCEEDED]
    if outcomes != wanted:
        yield f"its attempts ended {', '.join(outcomes)} instead of {', '.join(wanted)}"
    yield from _wrong_offers(played)
    if act.wanted == RunOutcome.HELD and played.held.missing != len(played.before.keys() - act.edition.amounts.keys()):
        yield f"{played.held.missing} products would disappear instead of all that are not in the file"


def _wrong_offers(played: Played) -> Iterator[str]:
    """A held run changes nothing. Any other shows the products of the file, and those shown before that it lacks."""
    asked, after = played.act.edition.amounts, played.after
    if played.act.wanted == RunOutcome.HELD:
        wanted: Shown = played.before
    else:
        wanted = {**{sku: played.before[sku] for sku in after.keys() - asked.keys() if sku in played.before}, **asked}
    if played.act.edition is SECOND:
        wanted = {LEAVER.sku: LEAVER.amount, **wanted}
    differ = sorted(sku for sku in wanted.keys() | after.keys() if wanted.get(sku) != after.get(sku))
    if differ:
        samples = ", ".join(
            f"{sku} at {after.get(sku, 'nothing')}, not {wanted.get(sku, 'nothing')}" for sku in differ[:3]
        )
        yield f"consumers see {len(differ)} products differently than they should ({samples})"
