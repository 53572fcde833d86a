"""Alerts about pages: one for each shop and cause, never one for each page, and each ends with its cause."""

from collections import Counter
from collections.abc import Mapping
from typing import Any, Final
from uuid import UUID

from django.db import connection
from django.db.models import Count

from harvester.catalog.models import Source
from harvester.ops.alerts import Severity, raise_alert, resolve_alert
from harvester.ops.models import Alert
from harvester.runs.gates import Gate, Verdict
from harvester.runs.models import Run
from harvester.scraping.gates import GATES
from harvester.scraping.models import AdapterState, QuarantineEntry, ScrapeTarget
from harvester.scraping.states import PageOutcome, TargetStatus, was_read

ADAPTER_DISABLED: Final = "SCRAPE_ADAPTER_DISABLED"
BATCH_REFUSED: Final = "SCRAPE_BATCH_REFUSED"
UNUSUAL: Final = "SCRAPE_UNUSUAL_RATES"
ZERO_PRICE: Final = "SCRAPE_ZERO_PRICE"
TARGETS_BROKEN: Final = "SCRAPE_TARGETS_BROKEN"
NO_AGREEMENT: Final = "SCRAPE_NO_AGREEMENT"
NO_ROOM: Final = "SCRAPE_NO_ROOM"

#: Pages of a run from which on their share means something.
FEWEST_PAGES: Final = 5
_HAD_OFFERS = """
SELECT count(*) FROM run_parts p JOIN scrape_targets t ON t.id = p.target_id
WHERE p.run_id = %(run)s AND p.begun_at = %(begun)s AND p.outcome = 'NO_AGREEMENT' AND t.last_seen IS NOT NULL
"""

#: Cause of broken pages -> the outcomes that mean it, and what to do; anything else is "unreadable".
CAUSES: Final[Mapping[str, tuple[tuple[PageOutcome, ...], str]]] = {
    "gone": ((PageOutcome.GONE,), "Delete them, or replace their addresses."),
    "moved": (
        (PageOutcome.WRONG_PRODUCT, PageOutcome.WRONG_DOMAIN),
        "They show other products or shops than before; replace their addresses, or delete them.",
    ),
    "unreadable": ((), "Try one of them, and correct the site file or the shop's overrides."),
}


def batch_judged(state: AdapterState, source: str, verdict: Verdict, unusual: str | None) -> None:
    """Raise an alert for each gate that refused a batch, and resolve those of gates that passed."""
    detail = {"source_id": str(state.source_id), "adapter_id": state.adapter_id}
    for gate, finding in zip(GATES, verdict.findings, strict=True):
        key = _gate_key(state, gate)
        if finding.holds:
            title = f"{source}: a batch of pages was refused ({gate.title.lower()})"
            body = f"{finding.reason}\nIts offers wait in quarantine; no price of it was written. Look at them there."
            raise_alert(BATCH_REFUSED, key, title, body, severity="warning", detail={**detail, "gate": gate.name})
        else:
            resolve_alert(key, "The next batch passed.")
    key = f"{UNUSUAL}:source:{state.source_id}:{state.adapter_id}"
    if unusual:
        body = f"{unusual}\nWhat was read was written. Look at what the pages that failed have in common."
        raise_alert(UNUSUAL, key, f"{source}: fewer pages can be read than usual", body, detail=detail)
    else:
        resolve_alert(key, "The next batch was as usual.")


def adapter_disabled(state: AdapterState, source: str, why: str, severity: Severity) -> None:
    body = (
        f"{why}\nNothing of this shop is read any more; what is shown stays until it expires. Fix the cause, then "
        "enable the adapter for this shop, and check its next run."
    )
    detail = {"source_id": str(state.source_id), "adapter_id": state.adapter_id, "reason": state.disabled_reason}
    title = f"{source}: the adapter {state.adapter_id} was switched off"
    raise_alert(ADAPTER_DISABLED, _disabled_key(state), title, body, severity=severity, detail=detail)


def adapter_enabled(state: AdapterState, who: str) -> None:
    """Resolve what is over with a new start: its counters are zero."""
    resolve_alert(_disabled_key(state), f"{who} enabled it again.")
    for gate in GATES:
        resolve_alert(_gate_key(state, gate), f"{who} enabled the adapter again.")


def zero_prices_changed(source_id: UUID, source: str) -> None:
    """Raise or resolve the alert about prices of zero: it is open while one waits in quarantine."""
    count = _zero_prices(source_id)
    body = "They wait in quarantine and were not written. Look at them: a price of zero is a sign of a changed page."
    title = f"{source}: {count:,} {'page has' if count == 1 else 'pages have'} a price of zero"
    _keep(ZERO_PRICE, "zero", source_id, count, title=title, body=body)


def broken_targets_changed(source_id: UUID, source: str) -> None:
    """Raise or resolve the alerts about broken pages of a shop, one for each cause."""
    counts = _broken(source_id)
    for cause, (_, advice) in CAUSES.items():
        title = f"{source}: {counts[cause]:,} pages are broken ({cause})"
        body = f"They failed five times in a row and are tried again once a week. {advice}"
        _keep(TARGETS_BROKEN, cause, source_id, counts[cause], title=title, body=body)


def run_ended(run: Run, source: Source, pages: Mapping[str, int]) -> None:
    """Raise or resolve the alert about pages that had an offer before and of which nothing agrees any more.

    Such pages do not count as failures of the adapter, so no gate notices a redesigned shop whose offers expire.
    A run of few pages says nothing about the shop.

    Args:
        run: the run.
        source: its source.
        pages: outcome -> pages of the run.
    """
    read = sum(number for outcome, number in pages.items() if was_read(outcome))
    if read < FEWEST_PAGES:
        return
    had_offers = 0
    if pages.get(PageOutcome.NO_AGREEMENT, 0) >= FEWEST_PAGES:
        with connection.cursor() as cursor:
            cursor.execute(_HAD_OFFERS, {"run": run.pk, "begun": run.started_at})
            had_offers = int(cursor.fetchone()[0])
    key = f"{NO_AGREEMENT}:source:{source.pk}"
    if had_offers < FEWEST_PAGES or had_offers * 2 <= read:
        resolve_alert(key, f"Run {run.no} could read most of its pages.")
        return
    title = f"{source}: nothing agrees on {had_offers:,} of {read:,} pages that had an offer before"
    body = (
        f"The shop was probably redesigned. Run {run.no} wrote no price of these pages; what is shown stays until it "
        "expires. Look at them in quarantine, and make an override of the source from there or write a site file."
    )
    detail = {"source_id": str(source.pk), "run_no": run.no, "pages": had_offers, "read": read}
    raise_alert(NO_AGREEMENT, key, title, body, detail=detail)


def no_room() -> None:
    """Raise the alert about a disk that has no room for pages."""
    body = (
        "No page of any shop is read until there is room; nothing was lost, and what is shown stays until it expires. "
        "Free space on the disk of HARVESTER_HOME, or keep fewer pages (HARVESTER_KEEP_PAGES_GB). Reading continues "
        "within a minute."
    )
    raise_alert(NO_ROOM, NO_ROOM, "The disk has no room for more pages", body, severity="critical")


def resolve_no_room() -> None:
    resolve_alert(NO_ROOM, "The disk has room again.")


def resolve_ended() -> int:
    """Resolve alerts whose cause people have ended, as by deleting pages; return how many. In a transaction."""
    resolved = 0
    kinds = (TARGETS_BROKEN, ZERO_PRICE, NO_AGREEMENT)
    for alert in Alert.objects.filter(kind__in=kinds, resolved_at=None).order_by("pk"):
        source_id = UUID(alert.detail["source_id"])
        if alert.kind == ZERO_PRICE:
            is_left = _zero_prices(source_id) > 0
        elif alert.kind == NO_AGREEMENT:
            disagreeing = ScrapeTarget.objects.filter(source_id=source_id, last_status=PageOutcome.NO_AGREEMENT)
            is_left = disagreeing.filter(enabled=True, last_seen__isnull=False).exists()
        else:
            is_left = _broken(source_id)[alert.key.rsplit(":", 1)[-1]] > 0
        resolved += not is_left and resolve_alert(alert.key, "There is none left.")
    return resolved


def _zero_prices(source_id: UUID) -> int:
    entries = QuarantineEntry.objects.filter(source_id=source_id, status="OPEN")
    return entries.filter(reason=PageOutcome.ZERO_PRICE_EXTRACTED).count()


def _broken(source_id: UUID) -> Counter[str]:
    """Cause -> broken pages of a source."""
    broken = ScrapeTarget.objects.filter(source_id=source_id, status=TargetStatus.BROKEN, enabled=True)
    causes = {outcome: cause for cause, (outcomes, _) in CAUSES.items() for outcome in outcomes}
    counts: Counter[str] = Counter()
    for outcome, number in broken.values_list("last_status").annotate(number=Count("pk")):
        counts[causes.get(outcome, "unreadable")] += number
    return counts


def _keep(kind: str, cause: str, source_id: UUID, count: int, *, title: str, body: str) -> None:
    key = f"{kind}:source:{source_id}:{cause}"
    detail: dict[str, Any] = {"source_id": str(source_id), "count": count}
    if count:
        raise_alert(kind, key, title, body, detail=detail)
    else:
        resolve_alert(key, "There is none left.")


def _gate_key(state: AdapterState, gate: Gate) -> str:
    return f"{BATCH_REFUSED}:source:{state.source_id}:{state.adapter_id}:{gate.name}"


def _disabled_key(state: AdapterState) -> str:
    return f"{ADAPTER_DISABLED}:source:{state.source_id}:{state.adapter_id}"
