"""Registers the portal with Django."""

import logging

from django.apps import AppConfig


class PortalConfig(AppConfig):
    name = "harvester.portal"
    label = "portal"

    def ready(self) -> None:
        from harvester.portal import access

        access.listen()
        # Who came in and who did not is told by `access`; axes would say it again, with whatever was typed as a name.
        logging.getLogger("axes").setLevel(logging.ERROR)
