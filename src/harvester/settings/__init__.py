"""Django's settings, made from the environment through `harvester.kernel.config`."""

import os
from typing import Any

from harvester.engine.embedded import Cluster
from harvester.guards.vault import key_ring
from harvester.kernel.config import Config, parse_database_url

CONFIG: Config = Config.from_env(os.environ, is_root=os.geteuid() == 0)
APP_ROLE = "harvester_app"

_keys = key_ring(CONFIG).derived_keys("django")
SECRET_KEY = CONFIG.secret_key or _keys[0]
SECRET_KEY_FALLBACKS = [] if CONFIG.secret_key else _keys[1:]
DEBUG = CONFIG.debug
ALLOWED_HOSTS = list(CONFIG.allowed_hosts)
ROOT_URLCONF = "harvester.settings.urls"
WSGI_APPLICATION = "harvester.portal.wsgi.application"
AUTH_USER_MODEL = "ops.User"
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
# Every process configures its logs through harvester.guards.logs; Django must not add handlers of its own.
LOGGING_CONFIG = None
USE_TZ = True
TIME_ZONE = "UTC"
LANGUAGE_CODE = "en-us"
# Logs are set up by each process through `harvester.guards.logs`; Django's own handlers would print past its redaction.
LOGGING_CONFIG = None

INSTALLED_APPS = [
    "harvester.guards",
    "harvester.engine",
    "harvester.ops",
    "harvester.catalog",
    "harvester.feeds",
    "harvester.portal",
    "unfold.apps.BasicAppConfig",
    "django.contrib.admin.apps.SimpleAdminConfig",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "axes",
    "csp",
]

#: Ends sessions whose process is gone or frozen, so that their locks do not outlive them. No query gets helpers: to
#: start them takes longer than a search, and the other cores have queries of their own.
SESSION_SETTINGS = {
    "client_connection_check_interval": "10s",
    "idle_in_transaction_session_timeout": "120s",
    "max_parallel_workers_per_gather": "0",
    "timezone": "UTC",
}
#: Keepalives find a dead link while nothing is sent; what was sent and never acknowledged needs a limit of its own.
KEEPALIVES = {
    "keepalives": 1,
    "keepalives_idle": 30,
    "keepalives_interval": 10,
    "keepalives_count": 3,
    "tcp_user_timeout": 30_000,
}


def _database(address: dict[str, Any], *, role: str = "") -> dict[str, Any]:
    address = dict(address)
    limits = SESSION_SETTINGS | ({"role": role} if role else {})
    settings = " ".join(f"-c {name}={value}" for name, value in limits.items())
    return {
        "ENGINE": "django.db.backends.postgresql",
        "NAME": address.pop("dbname"),
        "USER": address.pop("user", ""),
        "PASSWORD": address.pop("password", ""),
        "HOST": address.pop("host", ""),
        "PORT": str(address.pop("port", "")),
        "CONN_MAX_AGE": 600,
        "CONN_HEALTH_CHECKS": True,
        "OPTIONS": {**KEEPALIVES, "connect_timeout": 10, "options": settings, **address},
    }


def _databases() -> dict[str, Any]:
    """`default` is the application's role, `owner` the one that migrations run as.

    With one external URL only, the application still gives up what it does not need: its sessions begin with
    SET ROLE.
    """
    if CONFIG.embedded:
        cluster = Cluster(CONFIG.home, os_user=CONFIG.database_os_user)
        return {
            "default": _database(cluster.address("harvester_app")),
            "owner": _database(cluster.address("harvester_owner")),
        }
    application = parse_database_url(CONFIG.database_url)
    owner = parse_database_url(CONFIG.owner_database_url or CONFIG.database_url)
    role = "" if CONFIG.owner_database_url else APP_ROLE
    return {"default": _database(application, role=role), "owner": _database(owner)}


DATABASES = _databases()
DATABASE_ROUTERS = ["harvester.ops.database.MigrationsByOwner"]

from harvester.settings.web import *  # noqa: E402, F403 - the portal's half lives in its own file
