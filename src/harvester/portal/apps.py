"""Registers the portal with Django."""

import logging

from django.apps import AppConfig


class PortalConfig(AppConfig):
    name = "harvester.portal"
    label = "portal"

    def ready(self) -> None:
        from harvester.portal import access

        access.listen()
        # Who came in and who did not is audited; axes would say it again, four times per login.
        logging.getLogger("axes").setLevel(logging.WARNING)
