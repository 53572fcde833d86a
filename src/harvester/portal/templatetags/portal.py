"""Values as people read them, for templates."""

from collections.abc import Iterator
from datetime import datetime
from typing import Any

from django import template
from django.contrib.admin.utils import label_for_field, lookup_field
from django.utils.html import conditional_escape
from django.utils.safestring import SafeString, mark_safe

from harvester.engine.models import Job
from harvester.portal import display, links
from harvester.portal.listing import KeysetChangeList

register = template.Library()


@register.simple_tag
def columns(changelist: KeysetChangeList) -> list[str]:
    """Headings of a list."""
    admin = changelist.model_admin
    return [str(label_for_field(name, changelist.model, admin)) for name in changelist.list_display]


@register.simple_tag
def rows(changelist: KeysetChangeList) -> Iterator[list[tuple[str, Any]]]:
    """Cells of each row: heading and content."""
    headings = columns(changelist)
    for row in changelist.result_list:
        values = (lookup_field(name, row, changelist.model_admin)[2] for name in changelist.list_display)
        yield list(zip(headings, values, strict=True))


@register.filter
def badge(word: str) -> SafeString:
    return display.badge(word)


@register.simple_tag
def link_to(kind: str, *ids: Any, text: str) -> SafeString:
    return links.link(kind, *ids, text=text)


@register.filter
def when(moment: datetime | None) -> SafeString:
    return display.when(moment)


@register.filter
def worker(name: str | None) -> SafeString:
    return display.worker(name)


@register.filter
def progress(job: Job) -> SafeString:
    return display.progress(job)


@register.filter
def duration(seconds: float) -> str:
    return display.duration(seconds)


@register.filter
def number(count: int) -> str:
    return f"{count:,}"


@register.filter
def verb(name: str) -> str:
    return display.verb(name)


@register.filter
def code(text: str) -> SafeString:
    """`Words between backticks` become code."""
    parts = [conditional_escape(part) for part in text.split("`")]
    marked = (f"<code>{part}</code>" if place % 2 else part for place, part in enumerate(parts))
    return mark_safe("".join(marked))  # noqa: S308 - each part is escaped
