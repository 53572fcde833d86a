"""The states and outcomes of scraping."""

from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from typing import Final, Literal

#: The name of runs over pages.
RUN_KIND: Final = "SCRAPE"


class TargetStatus(StrEnum):
    """Whether a page is read. A target is read only if it is enabled and ACTIVE; `enabled` is the switch of people.

    ACTIVE ─┬─ pause ────────────────────> PAUSED ── resume ──────────────┐
            ├─ five failures in a row ───> BROKEN ── weekly check reads ──┼─> ACTIVE
            └─ waited a day in the queue > STALE ─── re-queued ───────────┘
    """

    ACTIVE = "ACTIVE"
    PAUSED = "PAUSED"  # by a person
    BROKEN = "BROKEN"  # failed five times in a row; tried again once a week
    STALE = "STALE"  # waited in the queue for a day; a person re-queues it


class DisabledReason(StrEnum):
    """Why an adapter is off for a source."""

    MANUAL = "MANUAL"
    DRIFT_DETECTED = "DRIFT_DETECTED"
    TOS_VIOLATION = "TOS_VIOLATION"


class PageOutcome(StrEnum):
    """How reading one page ended. `RULES` says what each of them does."""

    OFFER = "OFFER"
    # Nothing certain was found on the page.
    SELECTOR_NOT_FOUND = "SELECTOR_NOT_FOUND"
    PRICE_NOT_FOUND = "PRICE_NOT_FOUND"
    TITLE_NOT_FOUND = "TITLE_NOT_FOUND"
    PAGE_STRUCTURE_CHANGED = "PAGE_STRUCTURE_CHANGED"
    EMPTY_PAGE = "EMPTY_PAGE"
    UNKNOWN_AVAILABILITY = "UNKNOWN_AVAILABILITY"
    # Something was found that a person should look at.
    NO_AGREEMENT = "NO_AGREEMENT"  # no site file says where to look, and the evidence does not agree
    MISSING_REQUIRED_FIELD = "MISSING_REQUIRED_FIELD"
    INVALID_PRICE = "INVALID_PRICE"
    ZERO_PRICE_EXTRACTED = "ZERO_PRICE_EXTRACTED"
    AMBIGUOUS_PRICE = "AMBIGUOUS_PRICE"
    CONTRADICTION = "CONTRADICTION"  # structured data and page disagree
    VALIDATION_FAILED = "VALIDATION_FAILED"
    NORMALIZATION_FAILED = "NORMALIZATION_FAILED"
    SELECTOR_FAILURE = "SELECTOR_FAILURE"
    ADAPTER_FAILED = "ADAPTER_FAILED"  # the adapter raised, took too long or too much memory
    # The product, not the adapter.
    OOS_NO_PRICE = "OOS_NO_PRICE"  # out of stock, and no price is shown
    NOT_MODIFIED = "NOT_MODIFIED"
    PRICE_MOVE = "PRICE_MOVE"  # the price moved far and waits for a second look
    GONE = "GONE"  # 404 or 410
    WRONG_PRODUCT = "WRONG_PRODUCT"
    WRONG_DOMAIN = "WRONG_DOMAIN"
    # The shop's server.
    BLOCKED_PAGE = "BLOCKED_PAGE"  # a captcha or a refusal, 403 included
    RATE_LIMITED = "RATE_LIMITED"  # 429
    NETWORK = "NETWORK"  # timeout, connection, 5xx after retries, too large
    BLOCKED_BY_ROBOTS_TXT = "BLOCKED_BY_ROBOTS_TXT"
    ROBOTS_UNAVAILABLE = "ROBOTS_UNAVAILABLE"
    # Never asked, or not used.
    DUPLICATE_WITHIN_RUN = "DUPLICATE_WITHIN_RUN"
    INVALID_URL = "INVALID_URL"
    # How the offer of a page ended when its batch was judged.
    DRIFT_DETECTED = "DRIFT_DETECTED"  # most of its batch failed
    SAME_VALUE = "SAME_VALUE"  # several products of its batch had one price or title
    BULK_MOVE = "BULK_MOVE"  # too many prices of its batch moved far
    SUPERSEDED = "SUPERSEDED"  # a newer observation of the product was promoted before


@dataclass(frozen=True, kw_only=True)
class Rule:
    """What an outcome does.

    Attributes:
        is_drift: it counts as a failure of the adapter.
        in_batch: it counts in the batch that the drift gate judges.
        failures: of the target in a row: "count", "reset", or nothing.
        breaker: of the source: "closes", "fails", or nothing.
        is_kept: a person finds it in quarantine.
    """

    is_drift: bool = False
    in_batch: bool = False
    failures: Literal["", "count", "reset"] = ""
    breaker: Literal["", "closes", "fails"] = ""
    is_kept: bool = False


_FAILED: Final = Rule(is_drift=True, in_batch=True, failures="count")
_DOUBTFUL: Final = Rule(is_drift=True, in_batch=True, failures="count", is_kept=True)
_NOTHING: Final = Rule()

RULES: Final[dict[PageOutcome, Rule]] = {
    PageOutcome.OFFER: Rule(in_batch=True, failures="reset", breaker="closes"),
    **dict.fromkeys(
        (
            PageOutcome.SELECTOR_NOT_FOUND,
            PageOutcome.PRICE_NOT_FOUND,
            PageOutcome.TITLE_NOT_FOUND,
            PageOutcome.PAGE_STRUCTURE_CHANGED,
            PageOutcome.EMPTY_PAGE,
            PageOutcome.UNKNOWN_AVAILABILITY,
            PageOutcome.ADAPTER_FAILED,
        ),
        _FAILED,
    ),
    **dict.fromkeys(
        (
            PageOutcome.MISSING_REQUIRED_FIELD,
            PageOutcome.INVALID_PRICE,
            PageOutcome.ZERO_PRICE_EXTRACTED,
            PageOutcome.AMBIGUOUS_PRICE,
            PageOutcome.CONTRADICTION,
            PageOutcome.VALIDATION_FAILED,
            PageOutcome.NORMALIZATION_FAILED,
            PageOutcome.SELECTOR_FAILURE,
        ),
        _DOUBTFUL,
    ),
    PageOutcome.NO_AGREEMENT: Rule(breaker="closes", is_kept=True),
    PageOutcome.OOS_NO_PRICE: Rule(failures="reset", breaker="closes"),
    PageOutcome.NOT_MODIFIED: Rule(in_batch=True, failures="reset", breaker="closes"),
    PageOutcome.PRICE_MOVE: Rule(in_batch=True, breaker="closes"),
    PageOutcome.GONE: Rule(failures="count", breaker="closes"),
    PageOutcome.WRONG_PRODUCT: Rule(failures="count", is_kept=True),
    PageOutcome.WRONG_DOMAIN: Rule(failures="count", is_kept=True),
    PageOutcome.BLOCKED_PAGE: Rule(breaker="fails"),
    PageOutcome.NETWORK: Rule(breaker="fails"),
    **dict.fromkeys(
        (
            PageOutcome.RATE_LIMITED,
            PageOutcome.BLOCKED_BY_ROBOTS_TXT,
            PageOutcome.ROBOTS_UNAVAILABLE,
            PageOutcome.DUPLICATE_WITHIN_RUN,
            PageOutcome.INVALID_URL,
        ),
        _NOTHING,
    ),
    # The page itself was read well; its batch was not believed, or a newer page was there first.
    PageOutcome.DRIFT_DETECTED: Rule(in_batch=True, failures="reset", breaker="closes", is_kept=True),
    PageOutcome.SAME_VALUE: Rule(in_batch=True, failures="reset", breaker="closes", is_kept=True),
    PageOutcome.BULK_MOVE: Rule(in_batch=True, failures="reset", breaker="closes", is_kept=True),
    PageOutcome.SUPERSEDED: Rule(in_batch=True, failures="reset", breaker="closes"),
}

#: Each outcome in plain words, for people who look at a page; its part says more.
MEANINGS: Final[dict[PageOutcome, str]] = {
    PageOutcome.OFFER: "Read.",
    PageOutcome.SELECTOR_NOT_FOUND: "A place that the site file names is not on the page.",
    PageOutcome.PRICE_NOT_FOUND: "The page shows no price.",
    PageOutcome.TITLE_NOT_FOUND: "The page shows no title.",
    PageOutcome.PAGE_STRUCTURE_CHANGED: "The page is built differently than before.",
    PageOutcome.EMPTY_PAGE: "The page is empty.",
    PageOutcome.UNKNOWN_AVAILABILITY: "The page does not say clearly whether the product can be bought.",
    PageOutcome.NO_AGREEMENT: "What the page says about its price or stock does not agree; it needs a site file.",
    PageOutcome.MISSING_REQUIRED_FIELD: "A required field is missing.",
    PageOutcome.INVALID_PRICE: "The price cannot be used.",
    PageOutcome.ZERO_PRICE_EXTRACTED: "The price is zero.",
    PageOutcome.AMBIGUOUS_PRICE: "Several prices are possible.",
    PageOutcome.CONTRADICTION: "Structured data and page disagree.",
    PageOutcome.VALIDATION_FAILED: "What was read is not valid.",
    PageOutcome.NORMALIZATION_FAILED: "What was read could not be brought into its usual form.",
    PageOutcome.SELECTOR_FAILURE: "A place that the site file names could not be read.",
    PageOutcome.ADAPTER_FAILED: "The adapter failed on this page.",
    PageOutcome.OOS_NO_PRICE: "Sold out, and the page shows no price.",
    PageOutcome.NOT_MODIFIED: "Not changed since it was last read.",
    PageOutcome.PRICE_MOVE: "The price moved far; it is written when a second look finds the same.",
    PageOutcome.GONE: "The page is gone.",
    PageOutcome.WRONG_PRODUCT: "The page shows another product than before.",
    PageOutcome.WRONG_DOMAIN: "The page leads to another shop.",
    PageOutcome.BLOCKED_PAGE: "The shop refused to show the page.",
    PageOutcome.RATE_LIMITED: "The shop asked for fewer requests.",
    PageOutcome.NETWORK: "The page could not be fetched.",
    PageOutcome.BLOCKED_BY_ROBOTS_TXT: "The shop's robots.txt does not allow the page.",
    PageOutcome.ROBOTS_UNAVAILABLE: "The shop's robots.txt could not be fetched, so nothing was.",
    PageOutcome.DUPLICATE_WITHIN_RUN: "Another page of the shop is the page of this product; nothing was written.",
    PageOutcome.INVALID_URL: "The address cannot be used.",
    PageOutcome.DRIFT_DETECTED: "Read, but most pages around it could not be.",
    PageOutcome.SAME_VALUE: "Read, but several products had the same price or title.",
    PageOutcome.BULK_MOVE: "Read, but too many prices moved far at once.",
    PageOutcome.SUPERSEDED: "Read, but a newer page of the product was there first.",
}
#: Outcomes of pages that wait for a person.
QUARANTINED: Final = tuple(outcome for outcome, rule in RULES.items() if rule.is_kept)
#: The target fails so often in a row until it is BROKEN.
MOST_FAILURES: Final = 5
#: A page that is still gone after so long is gone.
GONE_AFTER: Final = timedelta(hours=1)
#: Pages of which an offer was read, whatever happened to it afterwards.
READ: Final = (
    *(PageOutcome.OFFER, PageOutcome.PRICE_MOVE, PageOutcome.WRONG_PRODUCT, PageOutcome.SUPERSEDED),
    *(PageOutcome.DRIFT_DETECTED, PageOutcome.SAME_VALUE, PageOutcome.BULK_MOVE),
)
#: Pages that were there and looked at, besides those that count in a batch.
_SEEN: Final = frozenset(
    {
        *(PageOutcome.NO_AGREEMENT, PageOutcome.OOS_NO_PRICE, PageOutcome.WRONG_PRODUCT),
        PageOutcome.DUPLICATE_WITHIN_RUN,
    }
)
#: Offers that are left out, as expected or because something is not certain; nobody has to look at them.
DROPPED: Final = (PageOutcome.OOS_NO_PRICE, PageOutcome.UNKNOWN_AVAILABILITY)


def rule_of(outcome: str) -> Rule:
    """Return what an outcome does; the outcomes of parts that failed or were cancelled do nothing."""
    return RULES[PageOutcome(outcome)] if outcome in PageOutcome.__members__ else _NOTHING


def was_read(outcome: str) -> bool:
    """Return whether the shop showed the page, or said that it has not changed."""
    return rule_of(outcome).in_batch or outcome in _SEEN
