"""What every list and page of a model in the portal shares."""

from collections.abc import Callable, Sequence
from functools import update_wrapper
from typing import Any

from django.db.models import Model
from django.http import HttpRequest, HttpResponseBase
from django.urls import URLPattern, path
from django.views.decorators.http import require_safe
from unfold.admin import ModelAdmin

from harvester.ops.models import Role
from harvester.portal.listing import KeysetChangeList
from harvester.portal.requests import is_fragment, may


class PortalAdmin(ModelAdmin):
    """Read-only for everybody who is logged in. Writes are verbs behind pages of their own, never a model form.

    Attributes:
        mount: path under which the list lies.
        title: heading of the list.
        page_keys: order of the list; must end in something unique.
        empty: what an empty list says, unless a filter emptied it.
        live_seconds: how often the list's first page refreshes itself; 0 for never.
        numbers: columns of numbers, which are aligned to the right.
    """

    mount: str
    title: str
    page_keys: Sequence[str]
    empty: str = "There is nothing here yet."
    live_seconds = 0
    numbers: Sequence[str] = ()

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
        """The audit trail is the one history; Django's own is not written."""

    log_change = log_deletions = log_addition

    def get_urls(self) -> list[URLPattern]:
        return [self.url("", require_safe(self.changelist_view), "changelist"), *self.page_urls()]

    def page_urls(self) -> list[URLPattern]:
        """The pages beside the list."""
        return []

    def url(self, route: str, view: Callable[..., Any], name: str) -> URLPattern:
        def wrapper(*args: Any, **kwargs: Any) -> Any:
            return self.admin_site.admin_view(view)(*args, **kwargs)

        opts = self.model._meta  # noqa: SLF001 - Django's documented name for it
        return path(route, update_wrapper(wrapper, view), name=f"{opts.app_label}_{opts.model_name}_{name}")

    def get_page_keys(self, request: HttpRequest) -> Sequence[str]:  # noqa: ARG002
        return self.page_keys

    def get_changelist(self, request: HttpRequest, **_: Any) -> type[KeysetChangeList]:  # noqa: ARG002
        return KeysetChangeList

    def changelist_view(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponseBase:
        extra = {"title": self.title, "empty": self.empty, **(extra_context or {})}
        response = super().changelist_view(request, extra)
        if is_fragment(request) and hasattr(response, "template_name"):
            response.template_name = "portal/list_results.html"
        return response
