"""How a filter stands above a list: a pill that opens to choices or to a small form.

Drawn here and not by templates: a list has half a dozen of them, and they took as long as all its rows.
"""

from collections.abc import Iterable, Mapping
from html import escape
from typing import Any, NamedTuple

from django.utils.safestring import SafeString

from harvester.portal.forms import attributes

_MORE = '<span class="material-symbols-outlined" aria-hidden="true">expand_more</span>'
_PLAIN = {"autocapitalize": "none", "spellcheck": "false"}


class Choice(NamedTuple):
    """One choice: where it leads, what it says, and whether it is the present one."""

    link: str
    words: str
    is_chosen: bool


class Field(NamedTuple):
    """One field of a small form: its label, and the attributes of its input."""

    label: str
    about: Mapping[str, Any]


def text_field(label: str, name: str, value: str, hint: str = "") -> Field:
    return Field(label, {"name": name, "value": value, "placeholder": hint or None, **_PLAIN})


def choice_pill(title: str, summary: str, clear: str, choices: Iterable[Choice]) -> SafeString:
    offered = [Choice(clear, "All", not summary), *choices]
    links = "".join(
        f'<a href="{escape(choice.link)}"{_current(choice)}>{escape(str(choice.words))}</a>' for choice in offered
    )
    return _pill(title, summary, f'<div class="hv-menu">{links}</div>')


def form_pill(title: str, summary: str, clear: str, kept: Mapping[str, str], fields: Iterable[Field]) -> SafeString:
    """A form that keeps the other filters."""
    hidden = "".join(f"<input{attributes({'type': 'hidden', 'name': n, 'value': v})}>" for n, v in kept.items())
    inputs = "".join(
        f"<label>{escape(field.label)}<input{attributes({'class': 'hv-input', **field.about})}></label>"
        for field in fields
    )
    gone = f'<a class="hv-button" href="{escape(clear)}">Clear</a>' if summary else ""
    return _pill(
        title,
        summary,
        f'<form class="hv-menu hv-pill-form" method="get">{hidden}{inputs}<div class="hv-buttons">'
        f'<button type="submit" class="hv-button hv-primary">Apply</button>{gone}</div></form>',
    )


def _pill(title: str, summary: str, menu: str) -> SafeString:
    shown = f'<span class="hv-pill-value">{escape(summary)}</span>' if summary else ""
    return SafeString(
        f'<details class="hv-popover hv-pill{" hv-on" if summary else ""}" data-popover name="filters">'
        f"<summary>{escape(title)}{shown}{_MORE}</summary>{menu}</details>"
    )


def _current(choice: Choice) -> str:
    return ' aria-current="true"' if choice.is_chosen else ""
