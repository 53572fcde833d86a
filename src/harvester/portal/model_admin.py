"""The base of every list and page of a model in the portal."""

from collections.abc import Callable, Sequence
from functools import update_wrapper
from typing import Any

from django.db.models import Model
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse
from django.views.decorators.http import require_safe
from unfold.admin import ModelAdmin

from harvester.ops.models import Role
from harvester.portal.listing import KeysetChangeList
from harvester.portal.requests import is_fragment, may


class PortalAdmin(ModelAdmin):
    """Read-only for every logged-in user. Writes are verbs behind their own pages, never a model form.

    Attributes:
        mount: path of the list.
        title: heading of the list.
        page_keys: order of the list; must end in something unique.
        empty: text of an empty list without filters.
        live_seconds: how often the list's first page refreshes itself; 0 for never.
        numbers: columns of numbers, which are aligned to the right.
        add_label: the button that leads to the page named add; none without it.
        add_role: the role that sees this button.
    """

    mount: str
    title: str
    page_keys: Sequence[str]
    empty: str
    live_seconds = 0
    numbers: Sequence[str] = ()
    add_label = ""
    add_role = Role.ADMIN

    actions = None
    list_per_page = 25
    show_full_result_count = False
    sortable_by: Sequence[str] = ()
    search_help_text: str | None = ""

    def has_view_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:  # noqa: ARG002
        return may(request, Role.VIEWER)

    def has_module_permission(self, request: HttpRequest) -> bool:
        return self.has_view_permission(request)

    def has_add_permission(self, request: HttpRequest) -> bool:  # noqa: ARG002
        return False

    def has_change_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:  # noqa: ARG002
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:  # noqa: ARG002
        return False

    def log_addition(self, *_: Any) -> None:
        """Do nothing: the audit log is the only history."""

    log_change = log_deletions = log_addition

    def get_urls(self) -> list[URLPattern]:
        return [self.url("", require_safe(self.changelist_view), "changelist"), *self.page_urls()]

    def page_urls(self) -> list[URLPattern]:
        """Return the pages in addition to the list."""
        return []

    def url(self, route: str, view: Callable[..., Any], name: str) -> URLPattern:
        def wrapper(*args: Any, **kwargs: Any) -> Any:
            return self.admin_site.admin_view(view)(*args, **kwargs)

        return path(route, update_wrapper(wrapper, view), name=f"{self.opts.app_label}_{self.opts.model_name}_{name}")

    def render(self, request: HttpRequest, template: str, context: dict[str, Any]) -> HttpResponse:
        shell = {} if is_fragment(request) else self.admin_site.each_context(request)
        return TemplateResponse(request, template, {**shell, **context})

    def get_page_keys(self, request: HttpRequest) -> Sequence[str]:  # noqa: ARG002
        return self.page_keys

    def get_changelist(self, request: HttpRequest, **_: Any) -> type[KeysetChangeList]:  # noqa: ARG002
        return KeysetChangeList

    def changelist_view(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponseBase:
        extra: dict[str, Any] = {"title": self.title, "empty": self.empty, "add_label": self.add_label}
        if self.add_label and may(request, self.add_role):
            extra["add_url"] = reverse(f"admin:{self.opts.app_label}_{self.opts.model_name}_add")
        response = super().changelist_view(request, {**extra, **(extra_context or {})})
        if is_fragment(request) and hasattr(response, "template_name"):
            response.template_name = "portal/list_results.html"
        return response
