"""What the page of a run shows besides, by the kind of the run.

Of a feed: its file, its rows, and what changes or would change. Over pages: its batches with their verdicts, its pages.
"""

from collections.abc import Mapping
from typing import Any, Final

from django.http import HttpRequest
from django.template.defaultfilters import filesizeformat
from django.utils import timezone
from django.utils.text import capfirst

from harvester.catalog import before_images
from harvester.catalog.exposure import exposure_of, missed_by
from harvester.catalog.holds import choices, hold_of
from harvester.feeds import files, run_details
from harvester.feeds.findings import DUPLICATE, header_check
from harvester.feeds.models import FeedRun
from harvester.feeds.notices import titled
from harvester.feeds.run_details import FIGURES
from harvester.feeds.states import FeedStatus
from harvester.kernel.network import Field
from harvester.kernel.rejects import RejectCode
from harvester.kernel.text import without_markup
from harvester.ops.models import Role
from harvester.pipeline.held_difference import KINDS
from harvester.portal.display import badge
from harvester.portal.requests import may
from harvester.portal.runs.labels import code, gates
from harvester.portal.scraping.labels import COVERED, price_of, said, short_path, tinted
from harvester.runs import queries
from harvester.runs.models import Run
from harvester.runs.states import EVER_HELD, PROMOTED, RunOutcome, RunStatus, RunTrigger
from harvester.scraping.models import AdapterState, ScrapeBatch, ScrapeRun
from harvester.scraping.states import PageOutcome

#: Place on the page -> template.
_FEED_PARTS: Final = {
    name: f"portal/runs/feed/{name}.html"
    for name in ("headline", "trouble", "held", "top", "left", "figures", "facts", "approve", "approve_words", "reject")
}
#: Rows of each code that the page shows at first.
FIRST_SAMPLES = 5
_FEED_GROUPS: Final = {
    "File": ("download_bytes", "rows_read", "rows_parsed", "products_rejected", "duplicate_key_count", "error_count"),
    "Products": (
        *("products_upserted", "products_new", "products_changed", "products_back", "products_missing"),
        *("would_expire_count", "products_expired", "url_hash_fallback_count", "identity_upgrades"),
    ),
    "Prices": ("prices_due", "prices_written"),
}
#: Kind of change -> its name, and what it would mean for one product and for several.
CHANGES: Final = {
    "missing": ("Missing", "product goes missing", "products go missing"),
    "prices": ("Price changes", "price changes", "prices change"),
    "new": ("New", "product is new", "products are new"),
    "content": ("Changed content", "product changes its content", "products change their content"),
    "back": ("Back", "product comes back", "products come back"),
}
#: Products of a kind that are shown before somebody asks for more.
FIRST_PRODUCTS: Final = 8
_DELIMITERS: Final = {"\t": "tabs", ",": "commas", ";": "semicolons", "|": "bars"}


def of_feed(request: HttpRequest, run: Run, *, waits: bool) -> dict[str, Any]:
    """What the templates of the section need; `part` has those that the page shows."""
    found = FeedRun.objects.select_related("feed__source").filter(pk=run.pk).first()
    if found is None:
        return {}
    buttons = _buttons(request, found)
    every = request.GET.get("samples") == "all"
    samples = run_details.samples_of(run, None if every else FIRST_SAMPLES)
    header_rows = [row._replace(field=code(row.field)) for row in header_check(run, found.dialect)]
    part = dict(_FEED_PARTS)
    if header_rows:
        part["error"] = "portal/runs/feed/header.html"
    if any(buttons[name] for name in ("may_ignore", "may_undo", "offers_file")):
        part["buttons"] = "portal/runs/feed/buttons.html"
    if buttons["may_ignore"] or buttons["may_undo"]:
        part["dialogs"] = "portal/runs/feed/ask_ignore.html"
    source, is_held = found.feed.source, run.outcome == RunOutcome.HELD
    last = source.last_promoted_run_no
    return {
        "part": part,
        "feed": found.feed,
        "source": source,
        "feed_run": found,
        "prices_written": found.prices_written,
        "figure_groups": figure_groups(found),
        "notices": titled(found.notices),
        "binding": binding(found.dialect),
        "header_rows": header_rows,
        "delimiter": delimiter(found.dialect),
        "file_hash": files.hash_of(run),
        **buttons,
        "hold": hold_of(source) if is_held else None,
        # Whether the prices of the run that was promoted last are hidden, so that consumers see what was before it.
        "shown_is_ignored": (is_held or bool(run.error))
        and last is not None
        and Run.objects.filter(no=last, ignored_at__isnull=False).exists(),
        "not_visible": exposure_of(source.pk).not_visible_because,
        "choices": choices(source.pk, run.no) if waits else None,
        "missed": missed_by(source.pk, run.no) if run.outcome in PROMOTED else None,
        "now": timezone.now(),
        **_difference(request, run),
        "findings": findings(found, samples),
        "every_sample": every,
    }


def _buttons(request: HttpRequest, figures: FeedRun) -> dict[str, Any]:
    run, feed = figures.run, figures.feed
    operator, admin = may(request, Role.OPERATOR), may(request, Role.ADMIN)
    may_ignore = admin and run.outcome in PROMOTED and run.ignored_at is None
    file_kept, may_repair = files.is_kept(run), run.status == RunStatus.FAILED
    return {
        "may_ignore": may_ignore,
        "ignoring_restores": may_ignore and before_images.are_kept(run.source_id, run.no),
        "may_undo": admin and run.ignored_at is not None,
        "may_repair": may_repair,
        "may_run": operator and feed.status == FeedStatus.ENABLED,
        "may_edit": admin,
        "is_retired": feed.retired_at is not None,
        "file_kept": file_kept,
        "offers_file": file_kept and operator and not may_repair,
    }


def _difference(request: HttpRequest, run: Run) -> dict[str, Any]:
    """Return the changes of a run that is or was held, with the products of the chosen kind of change."""
    summary = run_details.difference_of(run) if run.outcome in EVER_HELD else None
    if summary is None:
        return {}
    view = difference(summary, request.GET.get("show", ""), every="more" in request.GET)
    goes_live = any(summary["counts"][kind] for kind in ("prices", "new", "content", "back"))
    return {"difference": view, "changes": changes_sentence(summary["counts"]), "goes_live": goes_live}


def figure_groups(figures: FeedRun) -> list[tuple[str, list[tuple[str, str]]]]:
    """Return every known figure, in groups."""
    groups = []
    for title, names in _FEED_GROUPS.items():
        found = []
        for name in names:
            value = getattr(figures, name)
            # Counts that are zero until a row was read say nothing before that.
            if value is not None and (value or figures.rows_read is not None):
                shown = filesizeformat(value) if name == "download_bytes" else f"{value:,}"
                found.append((capfirst(FIGURES[name].removeprefix("bytes ")), shown))
        if found:
            groups.append((title, found))
    return groups


def binding(dialect: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return each field with the columns from which it was read."""
    bound = dialect.get("columns") or {}
    return [(code(field), ", ".join(bound[field])) for field in Field if field in bound]


def delimiter(dialect: Mapping[str, Any]) -> str | None:
    mark = dialect.get("delimiter")
    return _DELIMITERS.get(mark, repr(mark)) if mark else None


def findings(figures: FeedRun, samples: Mapping[str, list[dict[str, Any]]]) -> list[dict[str, Any]]:
    """Return rejects, then warnings, each with its count and sample rows."""
    counts = {**figures.rejects, **figures.warnings}
    if figures.duplicate_key_count:
        counts[DUPLICATE] = figures.duplicate_key_count
    refused = set(RejectCode)
    codes = sorted({*counts, *samples}, key=lambda name: (name not in refused, -counts.get(name, 0), name))
    return [
        {
            "code": name,
            "title": code(name),
            "count": counts.get(name),
            "is_reject": name in refused,
            "samples": samples.get(name, []),
        }
        for name in codes
    ]


def difference(summary: Mapping[str, Any], wanted: str, *, every: bool) -> dict[str, Any]:
    """Return the changes, and the products of one kind of change: the wanted one, or the first one with products."""
    counts = summary["counts"]
    there = [kind for kind in KINDS if counts[kind]]
    chosen = wanted if wanted in KINDS else (there or KINDS)[0]
    return {
        "tabs": [{"kind": kind, "title": CHANGES[kind][0], "count": counts[kind]} for kind in KINDS],
        "counts": counts,
        "chosen": chosen,
        "title": CHANGES[chosen][0],
        "count": counts[chosen],
        "products": [_product(item) for item in summary["samples"][chosen][: None if every else FIRST_PRODUCTS]],
        "kept": len(summary["samples"][chosen]),
        "groups": [
            ("By category", "Category", summary["categories"]),
            ("By brand", "Brand", summary["brands"]),
        ],
    }


def _product(item: Mapping[str, Any]) -> dict[str, Any]:
    return {
        **item,
        "move": f"{item['factor'] - 1:+.0%}".replace("-", "\u2212") if item["factor"] is not None else "other currency",
        "fields": [
            (code(name), before and without_markup(before), after and without_markup(after))
            for name, (before, after) in item["changed"].items()
        ],
    }


def changes_sentence(counts: Mapping[str, int]) -> str:
    """28 products go missing, 4 prices change and 1 product is new."""
    parts = [f"{counts[kind]:,} {CHANGES[kind][1 if counts[kind] == 1 else 2]}" for kind in KINDS if counts[kind]]
    if not parts:
        return "Nothing that consumers see changes"
    return " and ".join(filter(None, (", ".join(parts[:-1]), parts[-1])))


#: Place on the page -> template.
_PAGE_PARTS: Final = {
    name: f"portal/runs/scrape/{name}.html" for name in ("headline", "left", "figures", "facts", "parts")
}
#: Pages that the page shows; the list of pages has the rest.
MOST_PAGES: Final = 50
_PAGE_GROUPS: Final = {
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


def of_pages(request: HttpRequest, run: Run, *, waits: bool) -> dict[str, Any]:  # noqa: ARG001 - every section gets it
    """What the templates of the section need; `part` has those that the page shows."""
    found = ScrapeRun.objects.select_related("source").filter(pk=run.pk).first()
    if found is None:
        return {}
    counts = queries.part_counts(run)
    chosen = request.GET.get("part", "")
    state = AdapterState.objects.filter(source=found.source, check_run_no=run.no).first()
    admin = may(request, Role.ADMIN)
    may_ignore, may_undo = admin and run.outcome in PROMOTED and run.ignored_at is None, admin and run.ignored_at
    # Of each field: on how many pages with an offer it was found, and the per cent.
    coverage = []
    for name, label in COVERED.items() if found.offers else ():
        count = int(found.fields_found.get(name, 0))
        coverage.append((label, count, min(round(100 * count / found.offers), 100)))
    part = dict(_PAGE_PARTS)
    if may_ignore or may_undo:
        part |= {"buttons": "portal/runs/feed/buttons.html", "dialogs": "portal/runs/scrape/ask_ignore.html"}
    return {
        "part": part,
        "may_ignore": may_ignore,
        "may_undo": may_undo,
        "source": found.source,
        "scrape": found,
        "prices_written": found.prices_written,
        "sentence": sentence(counts),
        "figure_groups": _page_figures(found, run),
        "rates": [
            (label, f"{100 * float(rate):.1f} %")
            for name, label in _RATES.items()
            if (rate := getattr(found, name)) is not None and run.status == RunStatus.SUCCEEDED
        ],
        "coverage": coverage,
        "batches": [
            {
                "batch": batch,
                "state": tinted("Refused", "failed") if batch.is_refused else tinted("Passed", "succeeded"),
                "gates": gates(batch.verdict),
            }
            for batch in ScrapeBatch.objects.filter(source=found.source, run_no=run.no).order_by("id")
        ],
        "pages": [
            {
                "target_id": known.part.target_id,
                "url": known.name,
                "name": short_path(known.name),
                "outcome": badge(known.outcome),
                "price": price_of(known.part.found),
                "said": said(known.part.detail),
            }
            for known in queries.parts(run, chosen if chosen in counts else "", MOST_PAGES)
        ],
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


def _page_figures(found: ScrapeRun, run: Run) -> list[tuple[str, list[tuple[str, str]]]]:
    """Return the figures in groups; those of a run in progress are not known yet."""
    if run.status == RunStatus.RUNNING:
        return []
    kind = queries.described([run])[0].kind
    labels = kind.figure_labels if kind else {}
    return [
        (title, [(labels.get(name, name).capitalize(), f"{getattr(found, name):,}") for name in names])
        for title, names in _PAGE_GROUPS.items()
    ]
