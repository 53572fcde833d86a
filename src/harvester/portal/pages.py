"""Pages of objects that Django's admin cannot list, such as those whose key has several columns."""

from collections.abc import Callable
from functools import update_wrapper
from typing import TYPE_CHECKING, Any

from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.urls import URLPattern, path

if TYPE_CHECKING:
    from harvester.portal.site import PortalSite


class Pages:
    """Pages below one path.

    Attributes:
        mount: this path.
        name: start of the names of their addresses, such as catalog_offer.
    """

    mount: str
    name: str

    def __init__(self, site: "PortalSite") -> None:
        self.site = site

    def urls(self) -> list[URLPattern]:
        raise NotImplementedError

    def url(self, route: str, view: Callable[..., Any], name: str) -> URLPattern:
        """Return an address behind the login."""

        def wrapper(*args: Any, **kwargs: Any) -> Any:
            return self.site.admin_view(view)(*args, **kwargs)

        return path(route, update_wrapper(wrapper, view), name=f"{self.name}_{name}")

    def render(self, request: HttpRequest, template: str, context: dict[str, Any]) -> HttpResponse:
        return TemplateResponse(request, template, {**self.site.each_context(request), **context})
