"""Filters of lists: a pill each, which opens to choices, to a text field or to two days."""

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

from django.contrib.admin import ListFilter
from django.db.models import Model, QuerySet
from django.http import HttpRequest

from harvester.portal.listing import AFTER, BEFORE

#: A changed filter begins at the first page.
PAGE = [AFTER, BEFORE]
#: Beyond it there is no next day to compare with.
LAST_YEAR = 9999


class Pill(ListFilter):
    """One filter.

    Attributes:
        parameters: names in the query string.
        template: how it opens.
    """

    parameters: tuple[str, ...]
    template: str

    def __init__(self, request: HttpRequest, params: dict[str, Any], model: type[Model], model_admin: Any) -> None:
        super().__init__(request, params, model, model_admin)
        for name in self.parameters:
            if name in params:
                given = params.pop(name)
                self.used_parameters[name] = given[-1] if isinstance(given, list) else given

    def has_output(self) -> bool:
        return True

    def expected_parameters(self) -> list[str | None]:
        return list(self.parameters)

    def get(self, name: str) -> str:
        """What was asked for, without NUL, which no text of the database can hold."""
        return str(self.used_parameters.get(name) or "").replace("\x00", "").strip()

    @property
    def summary(self) -> str:
        """What is chosen, for the pill itself."""
        return " ".join(filter(None, (self.get(name) for name in self.parameters)))

    def choices(self, changelist: Any) -> Iterator[dict[str, Any]]:
        """The address that drops this filter, and the other filters that a form must carry along."""
        gone = [*self.parameters, *PAGE]
        kept = {name: value for name, value in changelist.params.items() if name not in gone}
        yield {"clear": changelist.get_query_string(remove=gone), "kept": kept}


class ChoicePill(Pill):
    """One of a few values.

    Attributes:
        field: the model's field, and the name in the query string.
    """

    field: str
    template = "portal/filters/choice.html"

    def __init_subclass__(cls) -> None:
        cls.parameters = (cls.field,)

    def values(self) -> Iterable[tuple[str, str]]:
        """Value and words of each choice."""
        raise NotImplementedError

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:  # noqa: ARG002
        chosen = self.get(self.field)
        return queryset.filter(**{self.field: chosen}) if chosen else queryset

    def choices(self, changelist: Any) -> Iterator[dict[str, Any]]:
        yield from super().choices(changelist)
        chosen, offered = self.get(self.field), list(self.values())
        if chosen and chosen not in dict(offered):
            offered.append((chosen, chosen))
        for value, words in offered:
            link = changelist.get_query_string({self.field: value}, remove=PAGE)
            yield {"link": link, "words": words, "selected": value == chosen}


class TextPill(Pill):
    """A text that a field must be equal to."""

    field: str
    template = "portal/filters/text.html"
    hint = ""

    def __init_subclass__(cls) -> None:
        cls.parameters = (cls.field,)

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:  # noqa: ARG002
        wanted = self.get(self.field)
        return queryset.filter(**{self.field: wanted}) if wanted else queryset


class DaysPill(Pill):
    """From one day to another, both included, in UTC."""

    field: str
    template = "portal/filters/days.html"
    parameters = ("from", "to")

    @property
    def summary(self) -> str:
        first, last = self.get("from"), self.get("to")
        return f"{first or '…'} to {last or '…'}" if first or last else ""

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:  # noqa: ARG002
        first, last = _day(self.get("from")), _day(self.get("to"))
        if first:
            queryset = queryset.filter(**{f"{self.field}__gte": first})
        if last:
            queryset = queryset.filter(**{f"{self.field}__lt": last + timedelta(days=1)})
        return queryset


def _day(text: str) -> datetime | None:
    """What is no day filters nothing."""
    try:
        day = datetime.strptime(text, "%Y-%m-%d").replace(tzinfo=UTC)
    except ValueError:
        return None
    return day if day.year < LAST_YEAR else None
