"""The forms in which a feed is made and changed."""

from collections.abc import Callable
from typing import Any
from uuid import UUID

from django.contrib import messages
from django.contrib.admin import AdminSite
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.template.response import TemplateResponse
from django.urls import reverse

from harvester.feeds.models import Feed
from harvester.ops.models import Role
from harvester.portal.feeds import page
from harvester.portal.feeds.form_saves import Refused, save_changes, save_new
from harvester.portal.feeds.forms import SECRETS, FeedForm, NewFeedForm, initial_of
from harvester.portal.requests import require


def add(site: AdminSite, request: HttpRequest) -> HttpResponse:
    actor = require(request, Role.ADMIN)
    form = NewFeedForm(request.POST or None)
    feed = _saved(request, form, lambda: save_new(actor, form))
    if feed is not None:
        messages.success(request, f"{feed} is a draft now. It does not run before you enable it.")
        return redirect("admin:feeds_feed_change", feed.pk)
    context = {"title": "Add feed", "submit": "Save draft", "back": reverse("admin:feeds_feed_changelist")}
    return _page(site, request, form, context)


def edit(site: AdminSite, request: HttpRequest, feed_id: UUID) -> HttpResponse:
    actor, feed = require(request, Role.ADMIN), page.find(feed_id)
    form = FeedForm(request.POST or None, feed=feed, initial=initial_of(feed))
    if _saved(request, form, lambda: save_changes(actor, feed, form)) is not None:
        messages.success(request, f"{feed} is saved.")
        return redirect("admin:feeds_feed_change", feed.pk)
    context = {
        "title": "Edit",
        "submit": "Save",
        "feed": feed,
        "back": reverse("admin:feeds_feed_change", args=[feed.pk]),
    }
    return _page(site, request, form, context)


def _saved(request: HttpRequest, form: FeedForm, save: Callable[[], Feed]) -> Feed | None:
    """What came of a form that was sent; its errors stand in the form."""
    if request.method != "POST" or not form.is_valid():
        return None
    try:
        return save()
    except Refused as refused:
        for name, told in refused.problems.items():
            form.add_error(name if name in form.fields else None, told)
    return None


def _page(site: AdminSite, request: HttpRequest, form: FeedForm, context: dict[str, Any]) -> HttpResponse:
    retyped = form.is_bound and any(form.data.get(name) for name in SECRETS)
    shell = {**site.each_context(request), "form": form, "sections": form.shown(), "secrets_lost": retyped}
    return TemplateResponse(request, "portal/feeds/form.html", {**shell, **context})
