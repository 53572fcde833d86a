"""What a WSGI server loads: `gunicorn harvester.portal.wsgi`."""

import os

import structlog
from django.core.wsgi import get_wsgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "harvester.settings")

application = get_wsgi_application()

if not structlog.is_configured():
    from django.conf import settings

    from harvester.guards.logs import configure_logging

    configure_logging(settings.CONFIG.log_level, settings.CONFIG.log_format)
