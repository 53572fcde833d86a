"""Filters of lists: pills that open to choices, a text field or two days.

Their HTML is not in templates, where half a dozen pills took as long as all the rows.
"""

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from html import escape
from typing import Any, NamedTuple

from django.contrib.admin import ListFilter
from django.db.models import Model, QuerySet
from django.http import HttpRequest
from django.utils.safestring import SafeString

from harvester.portal.forms import attributes
from harvester.portal.listing import AFTER, BEFORE

_MORE = '<span class="material-symbols-outlined" aria-hidden="true">expand_more</span>'
_PLAIN = {"autocapitalize": "none", "spellcheck": "false"}


class Choice(NamedTuple):
    link: str
    label: str
    is_chosen: bool


class Field(NamedTuple):
    """A field of a small form, with the attributes of its input."""

    label: str
    attrs: Mapping[str, Any]


def text_field(label: str, name: str, value: str, hint: str = "") -> Field:
    return Field(label, {"name": name, "value": value, "placeholder": hint or None, **_PLAIN})


def choice_pill(title: str, summary: str, clear: str, choices: Iterable[Choice]) -> SafeString:
    offered = [Choice(clear, "All", not summary), *choices]
    links = "".join(
        f"<a{attributes({'href': choice.link, 'aria-current': 'true' if choice.is_chosen else None})}>"
        f"{escape(str(choice.label))}</a>"
        for choice in offered
    )
    return _pill(title, summary, f'<div class="hv-menu">{links}</div>')


def form_pill(title: str, summary: str, clear: str, kept: Mapping[str, str], fields: Iterable[Field]) -> SafeString:
    """Return a pill with a form that keeps the other filters."""
    hidden = "".join(f"<input{attributes({'type': 'hidden', 'name': n, 'value': v})}>" for n, v in kept.items())
    inputs = "".join(
        f"<label>{escape(field.label)}<input{attributes({'class': 'hv-input', **field.attrs})}></label>"
        for field in fields
    )
    clear_link = f'<a class="hv-button" href="{escape(clear)}">Clear</a>' if summary else ""
    return _pill(
        title,
        summary,
        f'<form class="hv-menu hv-pill-form" method="get">{hidden}{inputs}<div class="hv-buttons">'
        f'<button type="submit" class="hv-button hv-primary">Apply</button>{clear_link}</div></form>',
    )


def _pill(title: str, summary: str, menu: str) -> SafeString:
    shown = f'<span class="hv-pill-value">{escape(summary)}</span>' if summary else ""
    return SafeString(
        f'<details class="hv-popover hv-pill{" hv-on" if summary else ""}" data-popover name="filters">'
        f"<summary>{escape(title)}{shown}{_MORE}</summary>{menu}</details>"
    )


#: A changed filter starts at the first page.
PAGE = [AFTER, BEFORE]
#: Python has no day after its last one.
LAST_YEAR = 9999


class Pill(ListFilter):
    """One filter.

    Attributes:
        parameters: names in the query string.
    """

    parameters: tuple[str, ...]

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
        """Return the value of a parameter without NUL, which the database cannot store."""
        return str(self.used_parameters.get(name) or "").replace("\x00", "").strip()

    @property
    def summary(self) -> str:
        """Return the chosen values, shown on the pill."""
        return " ".join(filter(None, (self.get(name) for name in self.parameters)))

    def clear(self, changelist: Any) -> str:
        """Return the address without this filter."""
        return str(changelist.get_query_string(remove=[*self.parameters, *PAGE]))

    def drawn(self, changelist: Any) -> SafeString:
        raise NotImplementedError


class FormPill(Pill):
    """Fields to type into."""

    def fields(self) -> Iterable[Field]:
        raise NotImplementedError

    def drawn(self, changelist: Any) -> SafeString:
        dropped = [*self.parameters, *PAGE]
        kept = {name: value for name, value in changelist.params.items() if name not in dropped}
        return form_pill(str(self.title), self.summary, self.clear(changelist), kept, self.fields())


class ChoicePill(Pill):
    """One of a few values.

    Attributes:
        field: the model's field, and the name in the query string.
    """

    field: str

    def __init_subclass__(cls) -> None:
        cls.parameters = (cls.field,)

    def values(self) -> Iterable[tuple[str, str]]:
        """Return value and label of each choice."""
        raise NotImplementedError

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:  # noqa: ARG002
        chosen = self.get(self.field)
        return queryset.filter(**{self.field: chosen}) if chosen else queryset

    def drawn(self, changelist: Any) -> SafeString:
        chosen, offered = self.get(self.field), list(self.values())
        if chosen and chosen not in dict(offered):
            offered.append((chosen, chosen))
        choices = [
            Choice(changelist.get_query_string({self.field: value}, remove=PAGE), label, value == chosen)
            for value, label in offered
        ]
        return choice_pill(str(self.title), self.summary, self.clear(changelist), choices)


class TextPill(FormPill):
    """A text that a field must equal."""

    field: str
    hint = ""

    def __init_subclass__(cls) -> None:
        cls.parameters = (cls.field,)

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:  # noqa: ARG002
        wanted = self.get(self.field)
        return queryset.filter(**{self.field: wanted}) if wanted else queryset

    def fields(self) -> Iterable[Field]:
        return [text_field(str(self.title), self.field, self.summary, self.hint)]


class DaysPill(FormPill):
    """From one day to another, inclusive, in UTC."""

    field: str
    parameters = ("from", "to")

    @property
    def summary(self) -> str:
        first, last = self.get("from"), self.get("to")
        return f"{first or '…'} to {last or '…'}" if first or last else ""

    def fields(self) -> Iterable[Field]:
        labels = {"from": "From (UTC)", "to": "To (UTC)"}
        return [Field(label, {"type": "date", "name": name, "value": self.get(name)}) for name, label in labels.items()]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:  # noqa: ARG002
        first, last = _day(self.get("from")), _day(self.get("to"))
        if first:
            queryset = queryset.filter(**{f"{self.field}__gte": first})
        if last:
            queryset = queryset.filter(**{f"{self.field}__lt": last + timedelta(days=1)})
        return queryset


def _day(text: str) -> datetime | None:
    """Return a day, or nothing for any other text, which then does not filter."""
    try:
        day = datetime.strptime(text, "%Y-%m-%d").replace(tzinfo=UTC)
    except ValueError:
        return None
    return day if day.year < LAST_YEAR else None
