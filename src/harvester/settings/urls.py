"""The URLs of the web server: the API and the portal, which are independent of each other."""

from django.urls import include, path

from harvester.portal.urls import handler400, handler403, handler404, handler500
from harvester.portal.urls import urlpatterns as portal

__all__ = ["handler400", "handler403", "handler404", "handler500", "urlpatterns"]

urlpatterns = [path("api/", include("harvester.api.urls")), *portal]
