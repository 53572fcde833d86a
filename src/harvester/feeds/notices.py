"""Warnings about a whole run: something in its file or its changes that people should know.

A notice never rejects a row and never holds a run. Those that need attention raise one alert per feed and code, which
ends with the first promoted or held run without that notice.

To add one: a code and its line in `RULES`, and a `Notice` where it is found. Runs and feed tests share `of_report`; the
steps of a run call `store` with the codes that they check.
"""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from decimal import Decimal
from enum import StrEnum
from typing import Any

from django.db.models.functions import Now

from harvester.feeds.models import Feed, FeedRun
from harvester.feeds.reader import ParseReport
from harvester.feeds.reader.findings import storable
from harvester.guards.redaction import redact_text
from harvester.kernel.currencies import MINOR_UNITS
from harvester.ops.alerts import raise_alert, resolve_alert
from harvester.ops.models import Alert
from harvester.pipeline.match import TenfoldPrice
from harvester.runs.models import Run

#: Examples of a notice, and the characters of each.
MOST_EXAMPLES, EXAMPLE_CHARACTERS = 10, 200
#: The share of products with a stronger ID than before from which it is worth a look.
UPGRADE_SHARE = 0.05  # mutant: upgrade-share
#: The share of unknown texts among non-empty stock texts above which they are listed.
UNKNOWN_STOCK_SHARE = 0.05
NAMED_STOCK_TEXTS = 5


class NoticeCode(StrEnum):
    IDENTITY_UPGRADES = "IDENTITY_UPGRADES"  # many products have a stronger ID than before
    LINKS_COLLAPSED = "LINKS_COLLAPSED"  # different links are one product, because a parameter does not count
    FILE_TAKEN_AS_IS = "FILE_TAKEN_AS_IS"  # the file may be cut and was imported, because it stayed the same
    LAST_RECORD_LEFT_OUT = "LAST_RECORD_LEFT_OUT"  # the last record may be cut, so it changed nothing
    MANIFEST_UNUSABLE = "MANIFEST_UNUSABLE"  # the manifest has an entry for the file that cannot be used
    UNBOUND_COLUMNS = "UNBOUND_COLUMNS"  # columns look like a price, a currency, an ID or stock, and are not read
    SPARE_IDENTIFIERS = "SPARE_IDENTIFIERS"  # rows lack an identifier that another column has
    TENFOLD_PRICES = "TENFOLD_PRICES"  # prices moved by a factor near 10, 100 or 1000
    UNKNOWN_STOCK_TEXTS = "UNKNOWN_STOCK_TEXTS"  # many texts of the stock column are unknown


#: Codes that `of_report` checks.
OF_REPORT: tuple[NoticeCode, ...] = (
    NoticeCode.LINKS_COLLAPSED,
    NoticeCode.SPARE_IDENTIFIERS,
    NoticeCode.UNBOUND_COLUMNS,
    NoticeCode.UNKNOWN_STOCK_TEXTS,
)


@dataclass(frozen=True, kw_only=True)
class NoticeRule:
    """How the notices of one code are shown.

    Attributes:
        title: a short label.
        needs_attention: whether it raises an alert, which the dashboard shows too.
        advice: what to do about it.
        lasting_hours: how long its alert stays at least. A notice about changed values is not over with the next run,
            which finds these values already stored.
    """

    title: str
    needs_attention: bool
    advice: str
    lasting_hours: int = 0


RULES = {
    NoticeCode.FILE_TAKEN_AS_IS: NoticeRule(
        title="File imported although it may be cut",
        needs_attention=True,
        advice="Compare the last row of the file with the partner's; ask the partner to end files with a line feed.",
    ),
    NoticeCode.LAST_RECORD_LEFT_OUT: NoticeRule(
        title="Last row not imported yet",
        needs_attention=False,
        advice="The next run imports it if the file is still the same. Ask the partner to end files with a line feed.",
    ),
    NoticeCode.MANIFEST_UNUSABLE: NoticeRule(
        title="Manifest entry not usable",
        needs_attention=False,
        advice="Ask the partner to correct the manifest; without it, a cut file may not be noticed.",
    ),
    NoticeCode.IDENTITY_UPGRADES: NoticeRule(
        title="Many products changed their identity",
        needs_attention=True,
        advice="Check whether the partner changed the columns of the file.",
    ),
    NoticeCode.LINKS_COLLAPSED: NoticeRule(
        title="Different links count as one product",
        needs_attention=False,
        advice="If they are different products, add the parameter in which they differ to the feed's kept parameters "
        "(kept_parameters).",
    ),
    NoticeCode.UNBOUND_COLUMNS: NoticeRule(
        title="Columns that may matter are not read",
        needs_attention=False,
        advice="Check that prices, currencies, IDs and stock come from the right columns. If one of these "
        "columns is needed, ask the partner to give it a name that the network knows.",
    ),
    NoticeCode.SPARE_IDENTIFIERS: NoticeRule(
        title="Identifiers missing in their column",
        needs_attention=False,
        advice="Ask the partner to fill the column in every row. Identifiers of two columns are not mixed, because one "
        "product could become two; those of the other column are stored, and the search finds products by them.",
    ),
    NoticeCode.TENFOLD_PRICES: NoticeRule(
        title="Prices moved about tenfold",
        needs_attention=True,
        advice="Compare some of them with the shop. If they are wrong, ignore the run or correct the prices, and ask "
        "the partner for a corrected file.",
        lasting_hours=24,
    ),
    NoticeCode.UNKNOWN_STOCK_TEXTS: NoticeRule(
        title="Stock texts that are not understood",
        needs_attention=True,
        advice="Ask the partner what they mean, and choose on the feed how to read them (unknown_stock).",
    ),
}


@dataclass(frozen=True, kw_only=True)
class Notice:
    """One warning about a run or a file.

    Attributes:
        code: its code.
        message: one or two sentences with the figures.
        count: how many rows, products or cells it is about, where that makes sense.
        examples: the first of them, for people.
    """

    code: NoticeCode
    message: str
    count: int | None = None
    examples: tuple[str, ...] = ()

    def as_json(self) -> dict[str, Any]:
        """Return the notice as it is stored and shown: without secrets, and limited in length."""
        examples = [storable(redact_text(text))[:EXAMPLE_CHARACTERS] for text in self.examples[:MOST_EXAMPLES]]
        message = storable(redact_text(self.message))
        return {"code": self.code.value, "message": message, "count": self.count, "examples": examples}


def of_report(report: ParseReport) -> list[Notice]:
    """Return the notices about the parsed rows of a file, or the first of them."""
    notices = []
    if (links := report.duplicates) and links.collapsed:
        products = "1 product has" if links.collapsed == 1 else f"{links.collapsed:,} products have"
        message = f"{products} several links that differ in parameters that do not count; the last row of each is used."
        pairs = tuple(" and ".join(each) for each in links.collapsed_links)
        notices.append(Notice(code=NoticeCode.LINKS_COLLAPSED, message=message, count=links.collapsed, examples=pairs))
    notices += _of_spares(report)
    if doubtful := report.binding.doubtful:
        columns = "1 column is" if len(doubtful) == 1 else f"{len(doubtful):,} columns are"
        message = f"{columns} not read: the name looks like a currency, a price, an ID or stock, but is not known."
        names = tuple(f"{name} (looks like: {field})" for name, field in doubtful)
        notices.append(Notice(code=NoticeCode.UNBOUND_COLUMNS, message=message, count=len(doubtful), examples=names))
    return [*notices, *_of_stock(report)]


def _of_spares(report: ParseReport) -> list[Notice]:
    """Return one notice about all columns, with the count of each in the examples."""
    found = {field: count for field, count in report.findings.spared.items() if count}
    if not found:
        return []
    binding = report.binding
    examples = tuple(
        f"{binding.header[binding.columns[field][0]]!r} is empty in {count:,}, and there is a value in "
        + ", ".join(repr(binding.header[place]) for place in binding.spares[field])
        for field, count in found.items()
    )
    total = sum(found.values())
    message = f"{total:,} of {report.rows_valid:,} rows lack their identifier, and another column has one."
    return [Notice(code=NoticeCode.SPARE_IDENTIFIERS, message=message, count=total, examples=examples)]


def _of_stock(report: ParseReport) -> list[Notice]:
    texts = report.findings.unknown_stock
    count, cells = report.findings.unknown_stock_cells, report.stock_cells
    if count <= UNKNOWN_STOCK_SHARE * cells:
        return []
    # The dashboard shows the message alone, so it names the most frequent ones.
    named = ", ".join(f"{text[:30]!r} ({number:,})" for text, number in texts.most_common(NAMED_STOCK_TEXTS))
    least = "at least " if count > texts.total() else ""
    others = f" and {least}{len(texts) - NAMED_STOCK_TEXTS:,} others" if len(texts) > NAMED_STOCK_TEXTS else ""
    message = f"{count:,} of {cells:,} stock texts ({count / cells:.1%}) are not understood: {named}{others}."
    examples = tuple(f"{text!r}: {number:,}" for text, number in texts.most_common(MOST_EXAMPLES))
    return [Notice(code=NoticeCode.UNKNOWN_STOCK_TEXTS, message=message, count=count, examples=examples)]


def of_upgrades(count: int, products: int) -> list[Notice]:
    """Return a notice if many products have a stronger ID than before."""
    if count <= UPGRADE_SHARE * products:
        return []
    message = f"{count:,} of {products:,} products have a stronger ID than before."
    return [Notice(code=NoticeCode.IDENTITY_UPGRADES, message=message, count=count)]


def of_tenfold(count: int, known: int, examples: Sequence[TenfoldPrice]) -> list[Notice]:
    """Return a notice if prices moved by a factor near 10, 100 or 1000, however few."""
    if not count:
        return []
    message = f"{count:,} of {known:,} known prices moved by a factor near 10, 100 or 1000."
    shown = tuple(
        f"{price.title[:80]}: {_amount(price.before, price.currency)} -> {_amount(price.now, price.currency)} "
        f"{price.currency}"
        for price in examples
    )
    return [Notice(code=NoticeCode.TENFOLD_PRICES, message=message, count=count, examples=shown)]


def _amount(amount: Decimal, currency: str) -> str:
    return f"{amount:,.{MINOR_UNITS.get(currency, 2)}f}"


def store(run: Run, found: Iterable[Notice], *, checked: Collection[NoticeCode]) -> None:
    """Store a run's notices of the checked codes in place of earlier ones, in the caller's transaction."""
    figures = FeedRun.objects.select_for_update().only("notices").get(pk=run.pk)
    others = [notice for notice in figures.notices if notice["code"] not in checked]
    figures.notices = [*others, *(notice.as_json() for notice in found)]
    figures.save(update_fields=["notices"])


def raise_alerts(feed: Feed, run: Run) -> None:
    """Raise an alert for each notice of an ingested run that needs attention; end those without a notice."""
    stored = FeedRun.objects.values_list("notices", flat=True).get(pk=run.pk)
    by_code = {notice["code"]: notice for notice in stored}
    for code, rule in RULES.items():
        key = f"{code.value}:feed:{feed.id}"
        if not rule.needs_attention:
            continue
        if notice := by_code.get(code.value):
            body = "\n".join([notice["message"], *notice["examples"], rule.advice])
            detail = {"feed_id": str(feed.id), "run_no": run.no}
            raise_alert(code.value, key, f"{feed}: {rule.title.lower()}", body, detail=detail)
            continue
        lasting = Now() - timedelta(hours=rule.lasting_hours)
        recent = Alert.objects.filter(key=key, resolved_at=None, last_seen_at__gt=lasting)
        if not rule.lasting_hours or not recent.exists():
            resolve_alert(key, f"Run {run.no} does not have it.")


def titled(stored: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return stored notices with their titles and advice, for people."""
    known = {code.value: rule for code, rule in RULES.items()}
    return [
        {**notice, "title": known[notice["code"]].title, "advice": known[notice["code"]].advice}
        if notice["code"] in known
        else {**notice, "title": notice["code"], "advice": ""}
        for notice in stored
    ]
