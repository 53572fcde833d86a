"""Helpers of the forms of scraping. The verbs check the values."""

from collections.abc import Callable
from html import escape
from typing import TypeVar
from uuid import UUID

from django import forms
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils.http import url_has_allowed_host_and_scheme

from harvester.kernel.errors import InvalidInput
from harvester.portal.catalog.forms import attempt_in_form
from harvester.portal.forms import Drawn, attributes
from harvester.scraping.settings import InvalidSettings

Result = TypeVar("Result")


class Lines(Drawn, forms.Textarea):
    """A text of several lines."""

    def __init__(self, rows: int = 4, placeholder: str = "") -> None:
        given = {"class": "hv-input", "rows": rows, "spellcheck": "false", "placeholder": placeholder or None}
        super().__init__({name: value for name, value in given.items() if value is not None})

    def draw(self, value: object, attrs: dict[str, object]) -> str:
        text = "" if value is None else str(value)
        # A browser drops the first line break.
        return f"<textarea{attributes(attrs)}>\n{escape(text)}</textarea>"


def save_in_form(form: forms.Form, act: Callable[[], Result]) -> Result | None:
    """Call a verb. If it refuses, show each reason at the field that it is about."""

    def checked() -> Result | None:
        try:
            return act()
        except InvalidSettings as refused:
            for name, message in refused.problems.items():
                shown = message.removeprefix(f"{name}: ") if name in form.fields else message
                form.add_error(name if name in form.fields else None, f"{shown[:1].upper()}{shown[1:]}")
            return None

    return attempt_in_form(form, checked)


def one_of_each(request: HttpRequest, name: str) -> list[UUID]:
    """Return the ids of the boxes that were ticked.

    Raises:
        InvalidInput: there are none, or one of them is not an id.
    """
    given = request.POST.getlist(name)
    if not given:
        raise InvalidInput("No page was selected. Nothing was changed.")
    try:
        return [UUID(value) for value in given]
    except ValueError:
        raise InvalidInput("the list has changed. Open it again and select what you mean.", field=name) from None


def back(request: HttpRequest, otherwise: str, *args: object) -> HttpResponse:
    """Go back to the page of the button."""
    where = request.POST.get("back", "")
    if where.startswith("/") and url_has_allowed_host_and_scheme(where, allowed_hosts=None):
        return redirect(where)
    return redirect(otherwise, *args)
