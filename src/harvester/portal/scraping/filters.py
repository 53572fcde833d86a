"""Filters of the list of pages, which its bulk edit reads too."""

from collections.abc import Callable, Iterable, Mapping
from enum import StrEnum
from typing import Any, Final, TypeVar
from uuid import UUID

from django.db.models import QuerySet
from django.http import HttpRequest

from harvester.catalog.models import Source
from harvester.portal.display import verb
from harvester.portal.filters import ChoicePill
from harvester.portal.scraping.labels import TROUBLES
from harvester.scraping.states import PageOutcome, TargetStatus
from harvester.scraping.target_filters import TargetFilter, Trouble

Known = TypeVar("Known", bound=StrEnum)
#: Shops that filters and forms offer.
MOST_SOURCES: Final = 500
_SWITCH: Final = {"on": True, "off": False}


def read_filter(given: Mapping[str, str]) -> TargetFilter | None:
    """Return the pages that the parameters of the list mean; None if a parameter means nothing, so that none match."""
    try:
        return TargetFilter(
            source_id=UUID(given["source"]) if given.get("source") else None,
            status=_word(TargetStatus, given.get("status")),
            outcome=_word(PageOutcome, given.get("outcome")),
            trouble=_word(Trouble, given.get("trouble")),
            is_enabled=_SWITCH[given["switch"]] if given.get("switch") else None,
            has_moved=True if given.get("moved") else None,
            text=given.get("q", "").strip(),
        )
    except (KeyError, ValueError):
        return None


def _word(words: type[Known], given: str | None) -> Known | None:
    return words(given) if given else None


class Condition:
    """Of a choice that is a condition of `TargetFilter`, as the bulk edit reads it too."""

    field: str
    get: Callable[[str], str]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:  # noqa: ARG002
        wanted = read_filter({self.field: self.get(self.field)})
        return queryset.none() if wanted is None else queryset.filter(wanted.conditions())


class ShopPill(Condition, ChoicePill):
    title = "Shop"
    field = "source"

    def values(self) -> Iterable[tuple[str, str]]:
        known = Source.objects.filter(adapter_id__isnull=False).order_by("name")
        return [(str(pk), name) for pk, name in known.values_list("pk", "name")[:MOST_SOURCES]]

    @property
    def summary(self) -> str:
        """Return the name of the shop."""
        chosen = self.get(self.field)
        return next((name for value, name in self.values() if value == chosen), chosen)


class TroublePill(Condition, ChoicePill):
    title = "Trouble"
    field = "trouble"

    def values(self) -> Iterable[tuple[str, str]]:
        return [(trouble.value, TROUBLES[trouble]) for trouble in Trouble]


class StatusPill(Condition, ChoicePill):
    title = "Status"
    field = "status"

    def values(self) -> Iterable[tuple[str, str]]:
        return [(status.value, verb(status.value)) for status in TargetStatus]


class OutcomePill(Condition, ChoicePill):
    title = "Last outcome"
    field = "outcome"

    def values(self) -> Iterable[tuple[str, str]]:
        return [(outcome.value, verb(outcome.value)) for outcome in PageOutcome]


class SwitchPill(Condition, ChoicePill):
    title = "Switch"
    field = "switch"

    def values(self) -> Iterable[tuple[str, str]]:
        return [("on", "Enabled"), ("off", "Disabled")]
