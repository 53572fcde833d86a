"""The URL map of the web server: the API and the portal, which are independent of each other."""

from django.urls import include, path, register_converter
from django.urls.converters import IntConverter


class RowConverter(IntConverter):
    """A number that fits into the database's bigint; anything longer is not found."""

    regex = "[0-9]{1,18}"


register_converter(RowConverter, "row")

from harvester.portal import admin, errors  # noqa: E402, F401 - the addresses of the lists use the converter
from harvester.portal.probes import PROBES  # noqa: E402
from harvester.portal.site import site  # noqa: E402

urlpatterns = [
    path("api/", include("harvester.api.app")),
    *(path(address.lstrip("/"), view) for address, view in PROBES.items()),
    path("", site.urls),
]

handler400 = "harvester.portal.errors.bad_request"
handler403 = "harvester.portal.errors.forbidden"
handler404 = "harvester.portal.errors.not_found"
handler500 = "harvester.portal.errors.broken"
