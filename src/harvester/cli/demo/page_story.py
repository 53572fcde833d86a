"""Reads the pages of the demo's shop twice, and checks what consumers see. Needs Django."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Final

from django.db import connection
from rich.console import RenderableType
from rich.text import Text

from harvester.catalog import governance, retailers, sources
from harvester.catalog.models import Retailer, Source
from harvester.catalog.states import SourceKind
from harvester.cli.actor import operator
from harvester.cli.demo.page_shop import CURRENCY, HOST, LATER, USUAL, PageShop
from harvester.cli.output import stacked, table
from harvester.kernel.errors import NotFound, TerminalError
from harvester.runs.models import Run, RunPart
from harvester.runs.states import RunStatus
from harvester.scraping import overrides, quarantine, single_fetches, verbs
from harvester.scraping.models import FetchRequest, QuarantineEntry, ScrapeOverride, ScrapeTarget
from harvester.scraping.states import PageOutcome, TargetStatus

NAME: Final = "ridge-workshop"
#: Its pages are read four times as fast as a shop's usually are, because it is ours.
REQUESTS_PER_SECOND: Final = 2.0
_SHOWN = """
SELECT p.sku, v.amount FROM visible_offers v
JOIN source_products p ON p.source_id = v.source_id AND p.id = v.product_id WHERE v.source_id = %s
"""


@dataclass(frozen=True, kw_only=True)
class PageRun:
    """A run over the pages of the shop.

    Attributes:
        run: the run.
        outcomes: path of a page -> how reading it ended.
        shown: SKU -> the price that consumers see after it.
    """

    run: Run
    outcomes: dict[str, str]
    shown: dict[str, Decimal]


class PageStory:
    """The runs over pages of the demo.

    Attributes:
        shop: the server of the pages.
        source: the source that they are read for.
    """

    def __init__(self, shop: PageShop, wait: Callable[[Callable[[], bool], str], None]) -> None:
        self.shop, self._wait = shop, wait
        self.source = self._open()

    def play(self, report: Callable[[str], None]) -> Sequence[PageRun]:
        """Try a page, read all of them without showing them, show them, and read them again after a change."""
        tried = single_fetches.try_url(operator(), self.shop.url + USUAL[0].path, self.source)
        self._wait(lambda: _is_done(tried), "the first page is read")
        if not self.source.scrape_enabled:
            verbs.enable(operator(), self.source.pk)
        verbs.hide(operator(), self.source.pk)  # an earlier demo has shown it
        first = self._read("the first run over pages ends")
        self._check(first, dict.fromkeys((ware.path for ware in USUAL), PageOutcome.OFFER), shown={})
        pace = f"one request in {1 / REQUESTS_PER_SECOND:g} s"
        report(f"run {first.run.no}, {NAME}: {len(USUAL)} pages read ({pace}), and hidden until somebody shows them")

        verbs.show(operator(), self.source.pk)
        before = {ware.sku: Decimal(ware.price) for ware in USUAL}
        if self._shown() != before:
            raise TerminalError(f"The demo failed: consumers see {self._shown()} of {NAME} instead of {before}.")
        report(f"{NAME} is shown: consumers see {len(before)} more products")

        self.shop.wares = LATER
        second = self._read("the second run over pages ends")
        outcomes = {
            "usual": PageOutcome.OFFER,
            "redesigned": PageOutcome.NO_AGREEMENT,
            "captcha": PageOutcome.BLOCKED_PAGE,
        }
        expected = {ware.path: outcomes[ware.look] for ware in LATER}
        self._check(second, expected, shown={**before, LATER[0].sku: Decimal(LATER[0].price)})
        report(
            f"run {second.run.no}, {NAME}: one new price; a redesigned page waits in quarantine, another shows a "
            "captcha: both keep their last good price"
        )
        return first, second

    def _open(self) -> Source:
        """Return the source, with its pages at the address that this demo's server has."""
        actor, site = operator(), f"{self.shop.url}/"
        retailer = Retailer.objects.filter(domain=HOST).first()
        if retailer is None:
            retailer = retailers.create(actor, name="Ridge Workshop", website=site)
        try:
            source = sources.find(NAME)
        except NotFound:
            source = sources.create(actor, retailer.pk, name=NAME, kind=SourceKind.DIRECT, url=site)
        source = sources.update(actor, source.pk, url=site)
        settings = {"requests_per_second": REQUESTS_PER_SECOND, "default_currency": CURRENCY}
        verbs.update_settings(actor, source.pk, settings)
        if source.tos_reviewed_at is None:
            verbs.record_review(actor, source.pk, "The shop is part of the demo and allows everything.")
            verbs.choose_adapter(actor, source.pk, "structured")
        known = {target.url.partition(HOST)[2].partition("/")[2]: target for target in self._targets(source)}
        for ware in USUAL:
            target, url = known.get(ware.path[1:]), self.shop.url + ware.path
            if target is None:
                verbs.add_target(actor, source.pk, url)
            else:
                verbs.update_target(actor, target.pk, url=url, enabled=True, status=TargetStatus.ACTIVE)
                if target.chosen:
                    quarantine.forget_places(actor, target.pk)
        self._take_back(source)
        return Source.objects.select_related("retailer").get(pk=source.pk)

    def _take_back(self, source: Source) -> None:
        """Take back what somebody tried in an earlier demo and what would change how pages are read."""
        actor = operator()
        if source.adapter_id != "structured":
            verbs.choose_adapter(actor, source.pk, "structured")
        if not source.robots_compliant:
            verbs.set_robots_compliant(actor, source.pk, True, "The demo begins again.")
        for used in ScrapeOverride.objects.filter(source=source, status="ACTIVE"):
            overrides.retire(actor, source.pk, used.version)
        for state in governance.states([source.pk]):
            if state.gate != governance.Gate.CLOSED:
                governance.resume(actor, source.pk, state.kind)

    def _targets(self, source: Source) -> Sequence[ScrapeTarget]:
        return list(ScrapeTarget.objects.filter(source=source))

    def _read(self, what: str) -> PageRun:
        run = verbs.run_now(operator(), self.source.pk)
        self._wait(lambda: Run.objects.get(pk=run.pk).status != RunStatus.RUNNING, what)
        urls = {target.pk: target.url for target in self._targets(self.source)}
        parts = RunPart.objects.filter(run=run, begun_at=run.started_at)
        ended = {urls[part.target_id].removeprefix(self.shop.url): str(part.outcome) for part in parts}
        # Somebody may have added other pages.
        outcomes = {ware.path: ended[ware.path] for ware in USUAL if ware.path in ended}
        return PageRun(run=Run.objects.get(pk=run.pk), outcomes=outcomes, shown=self._shown())

    def _shown(self) -> dict[str, Decimal]:
        with connection.cursor() as cursor:
            cursor.execute(_SHOWN, [self.source.pk])
            shown = dict(cursor.fetchall())
        return {ware.sku: shown[ware.sku] for ware in USUAL if ware.sku in shown}

    def _check(self, read: PageRun, outcomes: dict[str, PageOutcome], *, shown: dict[str, Decimal]) -> None:
        """Raise unless the run and what consumers see are as expected."""
        if read.outcomes != outcomes:
            raise TerminalError(
                f"The demo failed in run {read.run.no}: its pages ended {read.outcomes} instead of {outcomes}."
            )
        if read.shown != shown:
            raise TerminalError(f"The demo failed in run {read.run.no}: consumers see {read.shown} instead of {shown}.")


def pages_summary(runs: Sequence[PageRun]) -> RenderableType:
    """Return what each page of the last run said."""
    last = runs[-1]
    waiting = QuarantineEntry.objects.filter(source_id=last.run.subject_id, status="OPEN").count()
    rows = [(path, outcome) for path, outcome in sorted(last.outcomes.items())]
    return stacked(
        table(("page", "outcome"), rows, title=f"Pages of {NAME}, run {last.run.no}"),
        Text(f"In quarantine: {waiting}. Look at it: harvester scrape quarantine list"),
    )


def _is_done(tried: FetchRequest) -> bool:
    tried.refresh_from_db()
    return tried.outcome is not None
