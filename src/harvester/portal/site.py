"""The portal's site: what is where, and who gets in."""

from collections.abc import Callable
from functools import update_wrapper
from typing import Any

from django.contrib.admin import AdminSite
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.urls import URLPattern, URLResolver, include, path
from django.views.decorators.http import require_http_methods, require_POST, require_safe
from unfold.sites import UnfoldAdminSite

from harvester.kernel.errors import TransientError
from harvester.ops.models import Role
from harvester.portal import access, account, dashboard, errors
from harvester.portal.navigation import menu
from harvester.portal.pages import Pages
from harvester.portal.requests import is_fragment, may


class PortalSite(UnfoldAdminSite):
    """Mounted at the root; its pages lie under the names of what they show, not of who models it."""

    login_form = account.LoginForm
    site_title = site_header = "Harvester"
    site_url = None
    index_title = "Dashboard"
    enable_nav_sidebar = True

    def __init__(self, name: str = "admin") -> None:
        super().__init__(name)
        self._pages: list[Pages] = []

    def add(self, pages: type[Pages]) -> None:
        """Pages of something that is no model with a key of one column."""
        self._pages.append(pages(self))

    def has_permission(self, request: HttpRequest) -> bool:
        """Everybody with an active login may look. Asked at each request, of the database."""
        return may(request, Role.VIEWER)

    def admin_view(self, view: Callable[..., Any], cacheable: bool = False) -> Callable[..., Any]:
        """A page that refreshes itself must not draw the login form into itself once its session has ended."""
        guarded = super().admin_view(view, cacheable)

        def inner(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
            if is_fragment(request) and not self.has_permission(request):
                return HttpResponse(status=401, headers={"HX-Refresh": "true"})
            return guarded(request, *args, **kwargs)

        return update_wrapper(inner, view)

    def get_urls(self) -> list[URLPattern | URLResolver]:
        """Only what the portal uses; Django's other admin pages do not exist here."""
        guard = self.admin_view
        form = require_http_methods(["GET", "HEAD", "POST"])
        own = [
            path("", guard(require_safe(self.index)), name="index"),
            path("login/", form(self.login), name="login"),
            path("logout/", guard(require_POST(self.logout)), name="logout"),
            path("account/password/", guard(form(self.password_change)), name="password_change"),
        ]
        models = [path(f"{page.mount}/", include(page.urls)) for page in self._registry.values()]
        others = [path(f"{pages.mount}/", include(pages.urls())) for pages in self._pages]
        return [*own, *models, *others]

    def each_context(self, request: HttpRequest) -> dict[str, Any]:
        """What the frame of every page shows.

        Unfold's own tries to import each of its forty settings as if it named a function and reckons all its colours
        anew: more than a millisecond of every page, for templates that the portal does not use.
        """
        navigation = menu(request) if self.has_permission(request) else ""
        return {**AdminSite.each_context(self, request), "sidebar_navigation": navigation}

    def get_app_list(self, request: HttpRequest, app_label: str | None = None) -> list[Any]:  # noqa: ARG002
        """Nobody is shown Django's list of applications; the menu is `navigation.menu`."""
        return []

    def index(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponse:
        return dashboard.page(self, request, extra_context or {})

    def login(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponse:
        """Nobody's password is checked before the limits of `access` allow it."""
        if request.method != "POST":
            return super().login(request, extra_context)
        try:
            wait = access.seconds_to_wait(request)
        except TransientError:
            return errors.logins_busy(request)
        if wait is not None:
            return errors.too_many_from_here(request, wait)
        with access.turn_to_check() as mine:
            return super().login(request, extra_context) if mine else errors.logins_busy(request)

    def logout(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponse:  # noqa: ARG002
        return account.log_out(request)

    def password_change(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponse:
        return account.change_password(self, request, extra_context or {})


site = PortalSite()
