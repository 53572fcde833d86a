"""The portal's site: its addresses and its login."""

from collections.abc import Callable
from functools import update_wrapper
from typing import Any

from django.contrib.admin import AdminSite
from django.contrib.auth import logout
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import redirect
from django.urls import URLPattern, URLResolver, include, path
from django.views.decorators.http import require_POST, require_safe
from unfold.sites import UnfoldAdminSite

from harvester.kernel.errors import TransientError
from harvester.ops.models import Role
from harvester.portal import access, dashboard, errors, users
from harvester.portal.navigation import menu
from harvester.portal.pages import Pages
from harvester.portal.requests import form_view, is_fragment, may


class PortalSite(UnfoldAdminSite):
    """Mounted at the root. The address of a page names what it shows, not the app of its model."""

    login_form = users.LoginForm
    site_title = site_header = "Harvester"
    site_url = None
    index_title = "Dashboard"
    enable_nav_sidebar = True

    def __init__(self, name: str = "admin") -> None:
        super().__init__(name)
        self._pages: list[Pages] = []

    def add(self, pages: type[Pages]) -> None:
        """Register pages of something whose key has several columns."""
        self._pages.append(pages(self))

    def has_permission(self, request: HttpRequest) -> bool:
        """Return whether the user is active. Each request checks this in the database."""
        return may(request, Role.VIEWER)

    def admin_view(self, view: Callable[..., Any], cacheable: bool = False) -> Callable[..., Any]:
        """Return the view behind the login. A page that refreshes itself reloads when its session has ended."""
        guarded = super().admin_view(view, cacheable)

        def inner(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
            if is_fragment(request) and not self.has_permission(request):
                return HttpResponse(status=401, headers={"HX-Refresh": "true"})
            return guarded(request, *args, **kwargs)

        return update_wrapper(inner, view)

    def get_urls(self) -> list[URLPattern | URLResolver]:
        """Return the portal's addresses; Django's other admin pages do not exist here."""
        guard = self.admin_view
        own = [
            path("", guard(require_safe(self.index)), name="index"),
            path("login/", form_view(self.login), name="login"),
            path("logout/", guard(require_POST(self.logout)), name="logout"),
            path("account/password/", guard(form_view(self.password_change)), name="password_change"),
        ]
        models = [path(f"{page.mount}/", include(page.urls)) for page in self._registry.values()]
        others = [path(f"{pages.mount}/", include(pages.urls())) for pages in self._pages]
        return [*own, *models, *others]

    def each_context(self, request: HttpRequest) -> dict[str, Any]:
        """Return what the frame of every page shows.

        Unfold's version tries to import each of its forty settings as if it named a function, and computes all its
        colors again: more than a millisecond of every page, for templates that the portal does not use.
        """
        navigation = menu(request) if self.has_permission(request) else ""
        return {**AdminSite.each_context(self, request), "sidebar_navigation": navigation}

    def get_app_list(self, request: HttpRequest, app_label: str | None = None) -> list[Any]:  # noqa: ARG002
        """Return nothing: the menu is `navigation.menu`."""
        return []

    def index(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponse:
        return dashboard.page(self, request, extra_context or {})

    def login(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponse:
        """Check the password only if the limits of `access` allow it."""
        if request.method != "POST":
            return super().login(request, extra_context)
        try:
            wait = access.seconds_to_wait(request)
        except TransientError:
            return errors.logins_busy(request)
        if wait is not None:
            return errors.too_many_attempts(request, wait)
        with access.password_check_slot() as acquired:
            return super().login(request, extra_context) if acquired else errors.logins_busy(request)

    def logout(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponse:  # noqa: ARG002
        logout(request)
        return redirect("admin:login")

    def password_change(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponse:
        return users.change_password(self, request, extra_context or {})


site = PortalSite()
