"""The HTML of filters above a list: pills that open to choices or to a small form.

Not in templates, where half a dozen pills took as long as all the rows.
"""

from collections.abc import Iterable, Mapping
from html import escape
from typing import Any, NamedTuple

from django.utils.safestring import SafeString

from harvester.portal.forms import attributes

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
