"""Register the portal with Django."""

import logging

from django.apps import AppConfig


class PortalConfig(AppConfig):
    name = "harvester.portal"
    label = "portal"

    def ready(self) -> None:
        from harvester.portal import access

        access.listen()
        # `access` logs failed logins; axes would repeat them, with the typed text as a name.
        logging.getLogger("axes").setLevel(logging.ERROR)
