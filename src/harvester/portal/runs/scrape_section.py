"""What the page of a run shows besides if it is over pages: its figures, its batches with their verdicts, its pages."""

from collections.abc import Mapping
from typing import Any, Final

from django.http import HttpRequest

from harvester.ops.models import Role
from harvester.portal.display import badge
from harvester.portal.requests import may
from harvester.portal.runs.labels import gates
from harvester.portal.scraping.labels import COVERED, price_of, said, short_path, tinted
from harvester.runs import queries
from harvester.runs.models import Run
from harvester.runs.states import PROMOTED, RunOutcome, RunStatus, RunTrigger
from harvester.scraping.models import AdapterState, ScrapeBatch, ScrapeRun
from harvester.scraping.states import PageOutcome

#: Place on the page -> template.
PARTS: Final = {name: f"portal/runs/scrape/{name}.html" for name in ("headline", "left", "figures", "facts", "parts")}
#: Pages that the page shows; the list of pages has the rest.
MOST_PAGES: Final = 50
_GROUPS: Final = {
    "Pages": ("pages", "urls_succeeded", "urls_failed", "not_modified", "oos_no_price"),
    "Offers": ("offers", "offers_valid", "offers_dropped", "quarantined", "zero_prices", "batches_refused"),
    "Prices": ("prices_written", "products_new"),
}
_RATES: Final = {"failure_rate": "Failure rate", "yield_rate": "Yield", "drop_rate": "Drop rate"}
#: Outcome -> how a sentence about a run names its pages.
_SAID: Final = {
    PageOutcome.OFFER: "read",
    PageOutcome.NOT_MODIFIED: "not changed",
    PageOutcome.OOS_NO_PRICE: "sold out",
    PageOutcome.NO_AGREEMENT: "ambiguous",
    PageOutcome.AMBIGUOUS_PRICE: "ambiguous",
    PageOutcome.PRICE_MOVE: "waiting for a second look",
    PageOutcome.GONE: "gone",
    PageOutcome.BLOCKED_PAGE: "blocked",
    PageOutcome.BLOCKED_BY_ROBOTS_TXT: "forbidden by robots.txt",
    PageOutcome.NETWORK: "unreachable",
}


def context(request: HttpRequest, run: Run, *, waits: bool) -> dict[str, Any]:  # noqa: ARG001 - every section gets it
    """What the templates of the section need; `part` has those that the page shows."""
    found = ScrapeRun.objects.select_related("source").filter(pk=run.pk).first()
    if found is None:
        return {}
    counts = queries.part_counts(run)
    chosen = request.GET.get("part", "")
    state = AdapterState.objects.filter(source=found.source, check_run_no=run.no).first()
    admin = may(request, Role.ADMIN)
    may_ignore, may_undo = admin and run.outcome in PROMOTED and run.ignored_at is None, admin and run.ignored_at
    part = dict(PARTS)
    if may_ignore or may_undo:
        part |= {"buttons": "portal/runs/feed/buttons.html", "dialogs": "portal/runs/scrape/ask_ignore.html"}
    return {
        "part": part,
        "may_ignore": may_ignore,
        "may_undo": may_undo,
        "source": found.source,
        "scrape": found,
        "sentence": sentence(counts),
        "figure_groups": _figures(found, run),
        "rates": [
            (label, f"{100 * float(rate):.1f} %")
            for name, label in _RATES.items()
            if (rate := getattr(found, name)) is not None and run.status == RunStatus.SUCCEEDED
        ],
        "coverage": _coverage(found),
        "batches": [
            {"batch": batch, "state": _batch_state(batch), "gates": gates(batch.verdict)}
            for batch in ScrapeBatch.objects.filter(source=found.source, run_no=run.no).order_by("id")
        ],
        "pages": [_page(part) for part in queries.parts(run, chosen if chosen in counts else "", MOST_PAGES)],
        "check": state,
        "admin": admin,
        "is_second_look": run.trigger == RunTrigger.RECHECK,
        "is_quarantined": run.outcome == RunOutcome.QUARANTINED,
    }


def sentence(counts: Mapping[str, int]) -> str:
    """Return how the pages of a run ended, such as "40 read, 1 ambiguous, 1 gone"."""
    named: dict[str, int] = {}
    for outcome, number in counts.items():
        if outcome == queries.PENDING:
            name = "waiting"
        elif outcome in PageOutcome.__members__:
            name = _SAID.get(PageOutcome(outcome), "not readable")
        else:
            name = "failed"
        named[name] = named.get(name, 0) + number
    order = list(dict.fromkeys(_SAID.values()))
    names = sorted(named, key=lambda name: order.index(name) if name in order else len(order))
    return ", ".join(f"{named[name]:,} {name}" for name in names)


def _figures(found: ScrapeRun, run: Run) -> list[tuple[str, list[tuple[str, str]]]]:
    """Return the figures in groups; those of a run in progress are not known yet."""
    if run.status == RunStatus.RUNNING:
        return []
    kind = queries.described([run])[0].kind
    labels = kind.figure_labels if kind else {}
    return [
        (title, [(labels.get(name, name).capitalize(), f"{getattr(found, name):,}") for name in names])
        for title, names in _GROUPS.items()
    ]


def _coverage(found: ScrapeRun) -> list[tuple[str, int, int]]:
    """Return for each field on how many pages with an offer it was found, and the per cent."""
    if not found.offers:
        return []
    counts = ((label, int(found.fields_found.get(name, 0))) for name, label in COVERED.items())
    return [(label, count, min(round(100 * count / found.offers), 100)) for label, count in counts]


def _batch_state(batch: ScrapeBatch) -> Any:
    return tinted("Refused", "failed") if batch.is_refused else tinted("Passed", "succeeded")


def _page(known: queries.DescribedPart) -> dict[str, Any]:
    return {
        "target_id": known.part.target_id,
        "url": known.name,
        "name": short_path(known.name),
        "outcome": badge(known.outcome),
        "price": price_of(known.part.found),
        "said": said(known.part.detail),
    }
