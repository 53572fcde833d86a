"""The pages that add and change a feed. They call verbs, all or nothing, and show what these refuse at the fields."""

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final
from uuid import UUID

from django.contrib import messages
from django.contrib.admin import AdminSite
from django.db import transaction
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.template.response import TemplateResponse
from django.urls import reverse

from harvester.catalog import fields, retailers, sources
from harvester.catalog.states import SourceKind
from harvester.feeds import verbs
from harvester.feeds.models import Feed
from harvester.feeds.settings import InvalidSettings, read_new_settings
from harvester.kernel.actor import Actor
from harvester.kernel.errors import Conflict, InvalidInput, NotFound
from harvester.ops.models import Role
from harvester.portal.feeds import page
from harvester.portal.feeds.forms import PLAIN, SECRETS, THRESHOLD, FeedForm, NewFeedForm, initial_of
from harvester.portal.feeds.labels import MEGABYTE
from harvester.portal.requests import require

_THRESHOLD: Final = re.compile(r"thresholds\.(\w+)")
#: The message of the verb names a command-line option instead of this checkbox.
_MESSAGES: Final = {"accept_insecure": "Check this box to use plain FTP, or choose SFTP."}
_WHOLE: Final = re.compile(r"[0-9]{1,12}")


class Refused(Exception):
    """A value that cannot be used.

    Attributes:
        problems: field, or None for the whole form -> what is wrong.
    """

    def __init__(self, problems: Mapping[str | None, str]) -> None:
        super().__init__(" ".join(problems.values()))
        self.problems = dict(problems)


def add(site: AdminSite, request: HttpRequest) -> HttpResponse:
    actor = require(request, Role.ADMIN)
    form = NewFeedForm(request.POST or None)
    feed = _saved(request, form, lambda: _save_new(actor, form))
    if feed is not None:
        messages.success(request, f"{feed} was added as a draft. Enable it to run it.")
        return redirect("admin:feeds_feed_change", feed.pk)
    context = {"title": "Add feed", "submit": "Save draft", "back": reverse("admin:feeds_feed_changelist")}
    return _page(site, request, form, context)


def edit(site: AdminSite, request: HttpRequest, feed_id: UUID) -> HttpResponse:
    actor, feed = require(request, Role.ADMIN), page.find(feed_id)
    form = FeedForm(request.POST or None, feed=feed, initial=initial_of(feed))
    if _saved(request, form, lambda: _save_changes(actor, feed, form)) is not None:
        messages.success(request, f"{feed} was saved.")
        return redirect("admin:feeds_feed_change", feed.pk)
    back = reverse("admin:feeds_feed_change", args=[feed.pk])
    return _page(site, request, form, {"title": "Edit", "submit": "Save", "feed": feed, "back": back})


def _saved(request: HttpRequest, form: FeedForm, save: Callable[[], Feed]) -> Feed | None:
    """Return the saved feed, or None with the errors in the form."""
    if request.method != "POST" or not form.is_valid():
        return None
    try:
        return save()
    except Refused as refused:
        for name, message in refused.problems.items():
            form.add_error(name if name in form.fields else None, message)
    return None


def _page(site: AdminSite, request: HttpRequest, form: FeedForm, context: dict[str, Any]) -> HttpResponse:
    lost = form.is_bound and any(form.data.get(name) for name in SECRETS)
    shell = {**site.each_context(request), "form": form, "sections": form.shown(), "secrets_lost": lost}
    return TemplateResponse(request, "portal/feeds/form.html", {**shell, **context})


def _save_new(actor: Actor, form: FeedForm) -> Feed:
    """Create the feed, and its source and retailer if they are new; none of it if anything is refused."""
    given = form.cleaned_data
    # Empty fields keep their defaults.
    settings = _settings(given, [name for name, value in given.items() if value != ""])
    problems = _problems(settings, given)
    with transaction.atomic():
        try:
            source_id = UUID(given["source"]) if given["source"] else _new_source(actor, given)
        except Refused as refused:
            raise Refused(problems | refused.problems) from None
        if problems:
            raise Refused(problems)
        with _refusals_at({"": "source"}):
            feed = verbs.create(actor, source_id, settings, accept_insecure=given["accept_insecure"])
        return _save_credentials(actor, feed, given)


def _save_changes(actor: Actor, feed: Feed, form: FeedForm) -> Feed:
    """Change the fields that were edited, so that changes by other users meanwhile stay."""
    given = form.cleaned_data
    with transaction.atomic():
        changes = _settings(given, form.changed_data)
        if changes:
            with _refusals_at({"expiry_hours": "expiry_hours"}):
                feed = verbs.update(actor, feed.pk, changes, accept_insecure=given["accept_insecure"])
        return _save_credentials(actor, feed, given)


def _problems(settings: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str | None, str]:
    """Return everything that is wrong with settings and new names at once; the verbs stop at the first."""
    names = {"source_name": (sources.CHECKS, "name")} if not given["source"] else {}
    if not given["source"] and not given["retailer"]:
        names |= {"retailer_name": (retailers.CHECKS, "name"), "website": (retailers.CHECKS, "website")}
    problems: dict[str | None, str] = {}
    try:
        with _refusals_at({}):
            read_new_settings(settings)
    except Refused as refused:
        problems |= refused.problems
    for field, (checks, name) in names.items():
        try:
            with _refusals_at({name: field}):
                fields.checked(checks, {name: given[field]})
        except Refused as refused:
            problems |= refused.problems
    return problems


def _new_source(actor: Actor, given: Mapping[str, Any]) -> UUID:
    if given["retailer"]:
        retailer_id = UUID(given["retailer"])
    else:
        with _refusals_at({"name": "retailer_name", "website": "website"}):
            retailer_id = retailers.create(actor, name=given["retailer_name"], website=given["website"]).pk
    with _refusals_at({"name": "source_name", "": "retailer"}):
        created = sources.create(
            actor,
            retailer_id,
            name=given["source_name"],
            kind=SourceKind.AFFILIATE_FEED,
            affiliate_network=given["network"],
        )
    return created.pk


def _save_credentials(actor: Actor, feed: Feed, given: Mapping[str, Any]) -> Feed:
    entered = {name: given[name] for name in SECRETS}
    replace = bool(given.get("replace"))
    if not replace and not any(entered.values()):
        return feed
    at = "private_key" if entered["private_key"] else "password" if entered["password"] else "passphrase"
    with _refusals_at({"password": "password", "": at}):
        return verbs.change_credentials(actor, feed.pk, replace=replace, **entered)


def _settings(given: Mapping[str, Any], names: list[str]) -> dict[str, Any]:
    """Return the settings in these fields."""
    settings = {name: given[name] for name in names if name in PLAIN}
    if "max_file_mb" in names:
        size = given["max_file_mb"]
        # Anything but a number is passed on: the verb says what is wrong with it.
        settings["max_file_bytes"] = int(size) * MEGABYTE if _WHOLE.fullmatch(size) else size
    thresholds = {name.removeprefix(THRESHOLD): given[name] for name in names if name.startswith(THRESHOLD)}
    return {**settings, "thresholds": thresholds} if thresholds else settings


@contextmanager
def _refusals_at(fields: Mapping[str, str]) -> Iterator[None]:
    """Turn a verb's refusal into `Refused` with the field of the form.

    Args:
        fields: field of a verb -> field of the form; the empty string stands for all others.
    """
    try:
        yield
    except InvalidSettings as problem:
        problems: dict[str | None, str]
        problems = {_field(name, text): _MESSAGES.get(name, text) for name, text in problem.problems.items()}
        raise Refused(problems) from None
    except (InvalidInput, Conflict, NotFound) as problem:
        named = problem.field if problem.field and problem.field in fields else ""
        text = problem.reason if named else str(problem)
        raise Refused({fields.get(named): text[:1].upper() + text[1:]}) from None


def _field(setting: str, message: str) -> str:
    """Return the field of a setting; for a threshold, the message names it."""
    if setting == "max_file_bytes":
        return "max_file_mb"
    named = _THRESHOLD.match(message) if setting == "thresholds" else None
    return f"{THRESHOLD}{named[1]}" if named else setting
