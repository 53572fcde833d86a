"""The end of one page: what its outcome does to its target, to the shop's breaker, to presence and to quarantine.

Everything happens in the transaction that ends the part, with the source locked. An offer is only looked at here; it is
written when its batch has been judged (`judging`).
"""

import json
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any, Final
from uuid import UUID

import structlog
from django.db import transaction

from harvester.catalog import governance, page_products
from harvester.guards.prepared import prepared_cursor
from harvester.kernel.rejects import Rejected
from harvester.pipeline.baseline import Baseline
from harvester.runs.models import RunPart
from harvester.scraping import alerts, log_events, quarantine
from harvester.scraping.duplicates import is_led_by_another
from harvester.scraping.gates import price_move
from harvester.scraping.models import ScrapeTarget
from harvester.scraping.offers import ScrapedOffer, offer_from_json
from harvester.scraping.promotion import (
    VALIDATORS,
    Reading,
    observation_of,
    other_after_redirect,
    other_product,
    price_before,
    supersede_entries,
)
from harvester.scraping.states import (
    GONE_AFTER,
    MEANINGS,
    MOST_FAILURES,
    RUN_KIND,
    PageOutcome,
    Rule,
    TargetStatus,
    rule_of,
)

log = structlog.get_logger(__name__)

#: What is doubtful -> how long to wait before it is looked at a second time.
SECOND_LOOK: Final = {PageOutcome.PRICE_MOVE: timedelta(minutes=10), PageOutcome.GONE: GONE_AFTER}
#: Until the next look if one said nothing about the doubt, as when the shop could not be reached.
LATER: Final = timedelta(hours=1)
#: Looks at one doubt after which it waits for the schedule: some shops show another price to every visitor.
MOST_LOOKS: Final = 5
BROKEN_AGAIN: Final = timedelta(days=7)
#: A sentence for people.
LONGEST_DETAIL: Final = 500

_COLUMNS: Final = tuple(field.attname for field in ScrapeTarget._meta.concrete_fields)  # noqa: SLF001 - documented
_JSON: Final = frozenset({"last_seen", "waiting", "pinned", "chosen"})
_TARGET: Final = f"SELECT {', '.join(_COLUMNS)} FROM scrape_targets WHERE id = %(id)s FOR NO KEY UPDATE"  # noqa: S608
#: What the end of a page writes of its target; people write the rest.
_WRITTEN: Final = (
    *("last_scraped_at", "last_success_at", "last_status", "last_detail", "last_full_fetch_at", "page", "moved_to"),
    *("etag", "last_modified", "consecutive_failures", "status", "waiting", "recheck_at", "recheck_reason"),
    "updated_at",
)
_SAVE: Final = f"""
UPDATE scrape_targets SET {", ".join(f"{name} = %({name})s" for name in _WRITTEN)} WHERE id = %(id)s
"""  # noqa: S608 - constants only


def note_end(cursor: Any, baseline: Baseline, adapter_id: str, part: RunPart) -> Rule:
    """Note the end of a page, and return the rule of its outcome, which may have changed on `part`."""
    target = _locked_target(part.target_id)
    if target is None:
        return rule_of("")
    part_at = part.observed_at or baseline.moment
    # A page that was kept and is read again may be older than what is known by now; it is judged and says no more.
    is_old = target.last_scraped_at is not None and part_at < target.last_scraped_at
    _check_offer(target, part, part_at)
    rule = rule_of(part.outcome or "")
    if is_old or part.outcome is None or part.outcome not in PageOutcome.__members__:
        return rule
    outcome = PageOutcome(part.outcome)
    was_broken = target.status == TargetStatus.BROKEN
    _note_outcome(target, part, outcome, rule, part_at)
    _plan_second_look(target, outcome, (part.found or {}).get("price"), part_at)
    _save(target)
    if rule.breaker:
        is_blocked = outcome is PageOutcome.BLOCKED_PAGE
        governance.note(cursor, target.source_id, RUN_KIND, rule.breaker, is_blocked=is_blocked)
    _note_presence(cursor, target, outcome, part_at)
    if rule.is_kept:
        quarantine.keep(cursor, baseline, target, adapter_id, part)
    elif outcome in (PageOutcome.OOS_NO_PRICE, PageOutcome.NOT_MODIFIED):
        supersede_entries(cursor, baseline, [(target.pk, part_at)])
    if was_broken or target.status == TargetStatus.BROKEN:
        alerts.broken_targets_changed(target.source_id, str(target.source))
        if was_broken != (target.status == TargetStatus.BROKEN):
            _log(log_events.TARGET_WORKS_AGAIN if was_broken else log_events.TARGET_BROKEN, target, part)
    return rule


def _check_offer(target: ScrapeTarget, part: RunPart, at: datetime) -> None:
    """Find out whether an offer may wait for its batch: valid, of the right product, and not moved far."""
    if part.outcome != PageOutcome.OFFER:
        return
    try:
        offer = offer_from_json(part.found or {})
        observation_of(Reading(target=target, offer=offer, observed_at=at, run_no=part.run.no))
    except (ValueError, TypeError, KeyError, Rejected) as problem:
        _end_as(part, PageOutcome.VALIDATION_FAILED, f"What was read is not valid: {problem}.")
        return
    if reason := other_product(target, offer) or other_after_redirect(target, offer, part.detail.get("url")):
        _end_as(part, PageOutcome.WRONG_PRODUCT, reason)
    elif reason := price_move(offer.price, price_before(target, offer)):
        if _is_confirmed(target, offer, at):
            part.detail = {**part.detail, "confirmed": reason}
            RunPart.objects.filter(pk=part.pk, begun_at=part.begun_at).update(detail=part.detail)
            _log(log_events.PRICE_CONFIRMED, target, part)
        else:
            _end_as(part, PageOutcome.PRICE_MOVE, reason)
            _log(log_events.PRICE_WAITS, target, part)


def _end_as(part: RunPart, outcome: PageOutcome, reason: str) -> None:
    part.outcome, part.detail = outcome.value, {**part.detail, "error": reason}
    RunPart.objects.filter(pk=part.pk, begun_at=part.begun_at).update(outcome=part.outcome, detail=part.detail)


def _is_confirmed(target: ScrapeTarget, offer: ScrapedOffer, at: datetime) -> bool:
    """Whether an earlier page, at least ten minutes before, said the same price."""
    waiting = target.waiting or {}
    return (
        waiting.get("reason") == PageOutcome.PRICE_MOVE
        and waiting["price"] == str(offer.price)
        and at - datetime.fromisoformat(waiting["at"]) >= SECOND_LOOK[PageOutcome.PRICE_MOVE]
    )


def _locked_target(target_id: UUID) -> ScrapeTarget | None:
    """Return a target, locked; None if it was deleted."""
    with prepared_cursor() as cursor:
        cursor.execute(_TARGET, {"id": target_id})
        row = cursor.fetchone()
    if row is None:
        return None
    values = dict(zip(_COLUMNS, row, strict=True))
    values |= {name: json.loads(values[name]) for name in _JSON if values[name]}
    return ScrapeTarget.from_db("default", _COLUMNS, values.values())


def _save(target: ScrapeTarget) -> None:
    values = {name: getattr(target, name) for name in (*_WRITTEN, "id")}
    with prepared_cursor() as cursor:
        cursor.execute(_SAVE, {**values, "waiting": json.dumps(target.waiting) if target.waiting else None})


def _note_outcome(target: ScrapeTarget, part: RunPart, outcome: PageOutcome, rule: Rule, at: datetime) -> None:
    said = part.detail.get("error") or part.detail.get("detail") or MEANINGS[outcome]
    target.last_scraped_at = target.updated_at = at
    target.last_status, target.last_detail = outcome.value, str(said)[:LONGEST_DETAIL]
    target.page = part.page or target.page
    if part.page and outcome is not PageOutcome.NOT_MODIFIED:
        target.last_full_fetch_at = at
        # Nobody is offered to replace a page by that of another product.
        target.moved_to = None if outcome is PageOutcome.WRONG_PRODUCT else part.detail.get("moved_to")
        # Until this page is written, the next request must not be answered with "not modified": that would confirm
        # what an earlier page said. Its validators wait with it.
        validators = {name: getattr(target, name) for name in VALIDATORS if getattr(target, name)}
        if outcome is PageOutcome.OFFER and validators:
            part.detail = {**part.detail, "validators": validators}
            RunPart.objects.filter(pk=part.pk, begun_at=part.begun_at).update(detail=part.detail)
        target.etag = target.last_modified = None
    if rule.failures == "count":
        target.consecutive_failures += 1
        if target.consecutive_failures >= MOST_FAILURES and target.status in (TargetStatus.ACTIVE, TargetStatus.STALE):
            target.status = TargetStatus.BROKEN
    elif rule.failures == "reset":
        target.consecutive_failures, target.last_success_at = 0, at
        if target.status == TargetStatus.BROKEN:
            target.status = TargetStatus.ACTIVE


def _plan_second_look(target: ScrapeTarget, outcome: PageOutcome, price: str | None, at: datetime) -> None:
    """Keep what is doubtful, and say when it is looked at again; a broken page is tried once a week."""
    waiting = target.waiting or {}
    is_repeated = waiting.get("reason") == outcome
    is_same = is_repeated and (outcome is PageOutcome.GONE or waiting.get("price") == price)
    if outcome in SECOND_LOOK and not is_same:
        looks = waiting["looks"] + 1 if is_repeated else 1
        waiting = {"reason": outcome.value, "at": at.isoformat(), "looks": looks, "price": price}
    elif rule_of(outcome).failures == "reset":
        waiting = {}
    elif waiting and not is_same:
        waiting = {**waiting, "looks": waiting["looks"] + 1}
    target.waiting, target.recheck_at, target.recheck_reason = waiting or None, None, None
    if waiting and not is_gone(target, at):
        due = datetime.fromisoformat(waiting["at"]) + SECOND_LOOK[PageOutcome(waiting["reason"])]
        if waiting["looks"] <= MOST_LOOKS:
            target.recheck_at = due if due > at else at + LATER
            target.recheck_reason = waiting["reason"]
    if target.recheck_at is None and target.status == TargetStatus.BROKEN:
        target.recheck_at, target.recheck_reason = at + BROKEN_AGAIN, TargetStatus.BROKEN.value


def is_gone(target: ScrapeTarget, at: datetime) -> bool:
    """Whether a second look at least an hour after the first found the page gone too."""
    waiting = target.waiting or {}
    return (
        waiting.get("reason") == PageOutcome.GONE == target.last_status
        and at - datetime.fromisoformat(waiting["at"]) >= SECOND_LOOK[PageOutcome.GONE]
    )


def _note_presence(cursor: Any, target: ScrapeTarget, outcome: PageOutcome, at: datetime) -> None:
    """Confirm or end the presence of the product; that of a feed's product is the feed's."""
    product = target.product_id or target.pinned_product_id
    if product is None:
        return
    if outcome is PageOutcome.NOT_MODIFIED:
        page_products.confirm_observed(cursor, target.source_id, [product], at)
        return
    is_ended = outcome is PageOutcome.OOS_NO_PRICE or (outcome is PageOutcome.GONE and is_gone(target, at))
    # A page that another one replaced says nothing about the product any more.
    if is_ended and not is_led_by_another(target, product):
        page_products.end_presence(cursor, target.source_id, [product], at)


def _log(event: str, target: ScrapeTarget, part: RunPart) -> None:
    fields = {"source_id": str(target.source_id), "target_id": str(target.pk), "run_no": part.run.no}
    write: Callable[[], Any] = lambda: log.info(event, outcome=part.outcome, **fields)  # noqa: E731 - for on_commit
    transaction.on_commit(write)
