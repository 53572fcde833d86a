"""Which pages of shops a list, a bulk edit or a request is about, and why a page yields nothing."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final
from uuid import UUID

from django.db.models import F, Q, QuerySet
from django.db.models.functions import Now

from harvester.kernel.text import trim
from harvester.scraping.models import ScrapeTarget
from harvester.scraping.states import PageOutcome, TargetStatus

#: Outcome of a part whose job failed in a way that no rule foresees; see `runs.parts.FAILED`.
_JOB_FAILED: Final = "FAILED"


class Trouble(StrEnum):
    """Why a page yields nothing, in four plain states."""

    BLOCKED = "BLOCKED"  # the shop does not want it read
    GONE = "GONE"  # the product is no longer there
    BROKEN = "BROKEN"  # the page is there and cannot be read with certainty
    OUR_PROBLEM = "OUR_PROBLEM"  # nothing that the shop could do about


@dataclass(frozen=True, kw_only=True)
class Diagnosis:
    """Why a page yields nothing, and what to do next."""

    trouble: Trouble
    reason: str
    next_step: str


_BLOCKED_STEP = "Slow down, or ask the shop: see the runbook 'A shop blocks us'. Do not try to get around a block."
_BROKEN_STEP = "Look at the page in quarantine, or try its address; then correct where the field is."
_DRIFT_STEP = "Find out why the other pages of its batch failed and fix that, then read the pages of the shop again."
_OURS_STEP = "Nothing to do unless it lasts: it is tried again by itself. The run of the page has the details."

#: Outcome -> diagnosis. Outcomes that are not here yield something, or wait for a second look.
DIAGNOSES: Final[Mapping[str, Diagnosis]] = {
    **{
        outcome.value: Diagnosis(trouble=Trouble.BLOCKED, reason=reason, next_step=step)
        for outcome, reason, step in (
            (PageOutcome.BLOCKED_PAGE, "The shop showed a captcha or refused the page.", _BLOCKED_STEP),
            (PageOutcome.RATE_LIMITED, "The shop asked for fewer requests (429).", "Lower the pace of the source."),
            (
                PageOutcome.BLOCKED_BY_ROBOTS_TXT,
                "The shop's robots.txt does not allow this page.",
                "Ask the shop, or delete the page. It is not read while robots.txt forbids it.",
            ),
            (
                PageOutcome.ROBOTS_UNAVAILABLE,
                "The shop's robots.txt could not be read, so nothing is fetched.",
                "Wait: it is tried again by itself. If it lasts, ask the shop.",
            ),
        )
    },
    PageOutcome.GONE.value: Diagnosis(
        trouble=Trouble.GONE,
        reason="The shop says that the page is gone (404 or 410).",
        next_step="Delete it, or enter the product's new address.",
    ),
    **{
        outcome.value: Diagnosis(trouble=Trouble.BROKEN, reason=reason, next_step=step)
        for outcome, reason, step in (
            (PageOutcome.SELECTOR_NOT_FOUND, "What the site file expects is not on the page.", _BROKEN_STEP),
            (PageOutcome.PRICE_NOT_FOUND, "The page has no price.", _BROKEN_STEP),
            (PageOutcome.TITLE_NOT_FOUND, "The page has no title of a product.", _BROKEN_STEP),
            (PageOutcome.PAGE_STRUCTURE_CHANGED, "The page is built in another way than before.", _BROKEN_STEP),
            (PageOutcome.EMPTY_PAGE, "The page has no content.", _BROKEN_STEP),
            (PageOutcome.UNKNOWN_AVAILABILITY, "The page does not say whether it is in stock.", _BROKEN_STEP),
            (
                PageOutcome.NO_AGREEMENT,
                "The page says different things about its price or stock, and no site file says which one counts.",
                "Choose the right place in quarantine, or add a site file.",
            ),
            (PageOutcome.MISSING_REQUIRED_FIELD, "A required field is missing.", _BROKEN_STEP),
            (PageOutcome.INVALID_PRICE, "The price cannot be read with certainty.", _BROKEN_STEP),
            (PageOutcome.ZERO_PRICE_EXTRACTED, "The price is zero.", _BROKEN_STEP),
            (PageOutcome.AMBIGUOUS_PRICE, "The page has several prices.", _BROKEN_STEP),
            (PageOutcome.CONTRADICTION, "Two places of the page contradict each other.", _BROKEN_STEP),
            (PageOutcome.VALIDATION_FAILED, "A value is not possible.", _BROKEN_STEP),
            (PageOutcome.NORMALIZATION_FAILED, "A value cannot be normalized.", _BROKEN_STEP),
            (PageOutcome.SELECTOR_FAILURE, "A place in the site file cannot be used.", _BROKEN_STEP),
            (
                PageOutcome.WRONG_PRODUCT,
                "The page is about another product than before.",
                "Check the address; enter the right one, or delete the page.",
            ),
            (
                PageOutcome.WRONG_DOMAIN,
                "The page leads to another shop.",
                "Enter the product's new address at this shop, or delete the page.",
            ),
            (PageOutcome.DRIFT_DETECTED, "Most pages of its batch failed, so none was believed.", _DRIFT_STEP),
            (PageOutcome.SAME_VALUE, "Several pages of its batch had one price or title.", _BROKEN_STEP),
            (PageOutcome.BULK_MOVE, "Too many prices of its batch moved far.", _BROKEN_STEP),
        )
    },
    **{
        outcome: Diagnosis(trouble=Trouble.OUR_PROBLEM, reason=reason, next_step=step)
        for outcome, reason, step in (
            (PageOutcome.NETWORK.value, "The page could not be fetched.", _OURS_STEP),
            (
                PageOutcome.ADAPTER_FAILED.value,
                "The adapter failed, took too long or needed too much memory.",
                "Report it with the kept page; the adapter has to be corrected.",
            ),
            (PageOutcome.INVALID_URL.value, "The address cannot be fetched.", "Correct the address."),
            (_JOB_FAILED, "The job of the page failed.", _OURS_STEP),
        )
    },
}
#: Diagnoses of a target that no outcome explains.
_ROBOTS_BLOCKED = Diagnosis(
    trouble=Trouble.BLOCKED, reason="An admin blocked this page.", next_step="Nothing, unless that was a mistake."
)
_STALE = Diagnosis(
    trouble=Trouble.OUR_PROBLEM,
    reason="It waited in the queue for a day and was taken out.",
    next_step="Re-queue the stale pages of the source, and check whether its schedule can be met.",
)
_NOT_READABLE = Diagnosis(
    trouble=Trouble.BROKEN,
    reason="It failed five times in a row, and is tried again once a week.",
    next_step=_BROKEN_STEP,
)


def diagnose(target: ScrapeTarget) -> Diagnosis | None:
    """Return why a page yields nothing and what to do next; None if it yields something, or was never read."""
    if target.robots_path_blocked:
        return _ROBOTS_BLOCKED
    if target.status == TargetStatus.STALE:
        return _STALE
    found = DIAGNOSES.get(target.last_status or "")
    if found and target.last_status == PageOutcome.NETWORK and target.last_detail:
        # From a server that is away to an answer of two gigabytes: what it was says what to do.
        return replace(found, reason=target.last_detail)
    return found or (_NOT_READABLE if target.status == TargetStatus.BROKEN else None)


def _has_trouble(trouble: Trouble) -> Q:
    """Return the same as a condition."""
    last = Q(last_status__in=[name for name, diagnosis in DIAGNOSES.items() if diagnosis.trouble == trouble])
    usual = Q(robots_path_blocked=False) & ~Q(status=TargetStatus.STALE)
    conditions = {
        Trouble.BLOCKED: Q(robots_path_blocked=True) | (usual & last),
        Trouble.GONE: usual & last,
        Trouble.BROKEN: usual
        & (last | (Q(status=TargetStatus.BROKEN) & (Q(last_status=None) | ~Q(last_status__in=list(DIAGNOSES))))),
        Trouble.OUR_PROBLEM: Q(robots_path_blocked=False) & (Q(status=TargetStatus.STALE) | last),
    }
    return conditions[trouble]


@dataclass(frozen=True, kw_only=True)
class TargetFilter:
    """Conditions that all apply, except those that are None or empty.

    Attributes:
        ids: these pages.
        source_id: of this source.
        status: ACTIVE, PAUSED, BROKEN or STALE.
        outcome: of the last page.
        text: part of the address or of the notes.
        trouble: why it yields nothing.
        is_enabled: the switch of people.
        is_due: whether it is due by its schedule.
        has_moved: whether the shop says that it is elsewhere now.
        is_linked: whether it is linked to a product.
        schedule: this cron line; empty for pages that are read on request only.
    """

    ids: Sequence[UUID] | None = None
    source_id: UUID | None = None
    status: TargetStatus | None = None
    outcome: str | None = None
    text: str = ""
    trouble: Trouble | None = None
    is_enabled: bool | None = None
    is_due: bool | None = None
    has_moved: bool | None = None
    is_linked: bool | None = None
    schedule: str | None = None

    def conditions(self) -> Q:
        found = Q()
        if self.ids is not None:
            found &= Q(pk__in=list(self.ids))
        equal = {
            "source_id": self.source_id, "status": self.status, "last_status": self.outcome, "enabled": self.is_enabled,
        }  # fmt: skip
        found &= Q(**{name: value for name, value in equal.items() if value is not None})
        if text := trim(self.text):
            found &= Q(url__icontains=text) | Q(notes__icontains=text)
        if self.trouble is not None:
            found &= _has_trouble(self.trouble)
        if self.is_due is not None:
            is_due = Q(due_at__isnull=False, due_at__lte=Now())
            found &= is_due if self.is_due else ~is_due
        if self.has_moved is not None:
            moved = Q(moved_to__isnull=False) & ~Q(moved_to=F("url"))
            found &= moved if self.has_moved else ~moved
        if self.schedule is not None:
            found &= Q(schedule=self.schedule or None)
        return found if self.is_linked is None else found & Q(product_id__isnull=not self.is_linked)

    def targets(self) -> QuerySet[ScrapeTarget]:
        return ScrapeTarget.objects.filter(self.conditions())

    def as_detail(self) -> dict[str, str]:
        """Return the conditions for the audit log."""
        given = {name: value for name, value in vars(self).items() if value not in (None, "")}
        if self.ids is not None:
            given["ids"] = f"{len(self.ids)} pages"
        return {name: str(value) for name, value in given.items()}
