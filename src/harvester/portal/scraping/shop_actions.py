"""What people do with a shop: review its terms, switch reading it on and off, show its prices, change its settings."""

from collections.abc import Callable
from functools import partial
from typing import Any, Final
from uuid import UUID

from django import forms
from django.contrib import messages
from django.contrib.admin import AdminSite
from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import redirect
from django.template.response import TemplateResponse

from harvester.catalog import governance
from harvester.catalog.states import Visibility
from harvester.kernel.actor import Actor
from harvester.ops.models import Role
from harvester.portal.forms import Text, Tick
from harvester.portal.requests import attempt, require
from harvester.portal.scraping import shop_page
from harvester.portal.scraping.forms import Lines, back, save_in_form
from harvester.portal.scraping.target_actions import outcome_of
from harvester.scraping.settings import SETTINGS, effective
from harvester.scraping.states import RUN_KIND
from harvester.scraping.verbs import request as request_pages
from harvester.scraping.verbs import requeue_stale
from harvester.scraping.verbs import sources as verbs

#: Settings that are ticked.
_TICKS: Final = tuple(name for name, setting in SETTINGS.items() if isinstance(setting.default, bool))


class SettingsForm(forms.Form):
    """The settings of `scraping/settings.py`, each once."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        for name, setting in SETTINGS.items():
            field: forms.Field
            if name in _TICKS:
                field = forms.BooleanField(label=setting.label, help_text=setting.help, required=False, widget=Tick())
            else:
                widget = Lines(3, "Accept-Language: de") if name == "headers" else Text()
                field = forms.CharField(label=setting.label, help_text=setting.help, required=False, widget=widget)
            self.fields[name] = field

    @property
    def sections(self) -> list[tuple[str, list[Any]]]:
        """Return the fields by their section, in the order in which they are declared."""
        found: dict[str, list[Any]] = {}
        for name, setting in SETTINGS.items():
            found.setdefault(setting.section, []).append(self[name])
        return list(found.items())


def entered(stored: dict[str, Any]) -> dict[str, Any]:
    """Return the settings of a source as they are typed; what is not set is empty."""
    values: dict[str, Any] = {}
    for name in SETTINGS:
        value = stored.get(name)
        if name in _TICKS:
            value = effective(stored)[name]
        elif isinstance(value, dict):
            value = "\n".join(f"{header}: {text}" for header, text in value.items())
        elif isinstance(value, list):
            value = ", ".join(value)
        values[name] = "" if value is None else value
    return values


def edit_settings(site: AdminSite, request: HttpRequest, source_id: UUID) -> HttpResponse:
    """Show the settings; a POST by an admin changes them."""
    source = shop_page.find(source_id)
    actor = require(request, Role.ADMIN) if request.method == "POST" else None
    form = SettingsForm(request.POST or None, initial=entered(source.scrape_config))
    if actor is not None and form.is_valid():
        changes = {name: form.cleaned_data[name] for name in form.changed_data}
        if save_in_form(form, lambda: verbs.update_settings(actor, source_id, changes)) is not None:
            messages.success(request, "The settings were saved. They count from the next request on.")
            return redirect("admin:scraping_shop_change", source_id)
    context = {**shop_page.shell(site, request, source), "form": form, "shown": _shown(source.scrape_config)}
    return TemplateResponse(request, "portal/scraping/shop_settings.html", context)


def _shown(stored: dict[str, Any]) -> list[tuple[str, Any]]:
    """Return the settings that everybody may see, with their values."""
    values = effective(stored)
    return [(setting.label, _plain(values[name])) for name, setting in SETTINGS.items() if setting.public]


def _plain(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return ", ".join(value) if isinstance(value, list) else str(value or "") or "default"


def _button(
    act: Callable[[Actor, UUID, QueryDict], str], role: Role = Role.ADMIN
) -> Callable[[HttpRequest, UUID], HttpResponse]:
    """Return the view of a button: it runs a verb and goes back to the page of the button."""

    def view(request: HttpRequest, source_id: UUID) -> HttpResponse:
        actor = require(request, role)
        attempt(request, lambda: act(actor, source_id, request.POST))
        return back(request, "admin:scraping_shop_change", source_id)

    return view


@_button
def terms(actor: Actor, source_id: UUID, given: QueryDict) -> str:
    verbs.record_review(actor, source_id, given.get("note", ""))
    return "The review of the terms was recorded."


@_button
def adapter(actor: Actor, source_id: UUID, given: QueryDict) -> str:
    source = verbs.choose_adapter(actor, source_id, given.get("adapter", ""))
    return f"The adapter {source.adapter_id} reads the pages from now on."


@_button
def robots(actor: Actor, source_id: UUID, given: QueryDict) -> str:
    is_allowed = given.get("allowed") == "yes"
    verbs.set_robots_compliant(actor, source_id, is_allowed, given.get("note", ""))
    if is_allowed:
        return "The shop may be read again, where its robots.txt allows it."
    return "Nothing of this shop is read until an admin allows it again."


@_button
def enable(actor: Actor, source_id: UUID, given: QueryDict) -> str:
    source = verbs.enable(actor, source_id, keep_visibility=given.get("keep") == "yes")
    seen = "see" if source.visibility == Visibility.ELIGIBLE else "do not see"
    return f"{source} is enabled. Consumers {seen} the prices of its pages."


@_button
def stop(actor: Actor, source_id: UUID, given: QueryDict) -> str:
    cancelled = verbs.stop(actor, source_id, given.get("reason", ""))
    return f"Stopped. {cancelled:,} waiting pages were cancelled. Offers stay until they expire."


@_button
def show_prices(actor: Actor, source_id: UUID, given: QueryDict) -> str:
    source = verbs.show(actor, source_id, anyway=given.get("anyway") == "yes")
    return f"Consumers see the prices of {source} now."


@_button
def hide_prices(actor: Actor, source_id: UUID, _: QueryDict) -> str:
    return f"The prices of {verbs.hide(actor, source_id)} are hidden. Its pages are still read."


@partial(_button, role=Role.OPERATOR)
def read(actor: Actor, source_id: UUID, _: QueryDict) -> str:
    return outcome_of(request_pages(actor, source_id).require())


@partial(_button, role=Role.OPERATOR)
def requeue(actor: Actor, source_id: UUID, _: QueryDict) -> str:
    return outcome_of(requeue_stale(actor, source_id).require())


@_button
def pause(actor: Actor, source_id: UUID, given: QueryDict) -> str:
    governance.pause(actor, source_id, RUN_KIND, given.get("reason", ""))
    return "The shop is paused. Nothing is requested until it is resumed."


@_button
def resume(actor: Actor, source_id: UUID, _: QueryDict) -> str:
    governance.resume(actor, source_id, RUN_KIND)
    return "The shop is resumed."


def stop_all(request: HttpRequest) -> HttpResponse:
    actor = require(request, Role.ADMIN)

    def act() -> str:
        stopped = verbs.stop_all(actor, request.POST.get("reason", ""))
        return f"{len(stopped):,} shops were stopped, and {sum(stopped.values()):,} waiting pages were cancelled."

    attempt(request, act)
    return back(request, "admin:scraping_shop_changelist")
