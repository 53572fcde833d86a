"""Django's settings, derived from the environment through `harvester.kernel.config`."""

import os
from datetime import timedelta
from typing import Any

from django.urls import reverse_lazy

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
USE_TZ = True
TIME_ZONE = "UTC"
LANGUAGE_CODE = "en-us"
# Each process configures its logs through `harvester.guards.logs`; Django's own handlers would bypass the redaction.
LOGGING_CONFIG = None

INSTALLED_APPS = [
    "harvester.guards",
    "harvester.engine",
    "harvester.ops",
    "harvester.runs",
    "harvester.catalog",
    "harvester.feeds",
    "harvester.scraping",
    "harvester.evidence",
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

#: End sessions whose process is gone or frozen, so that their locks do not remain. No parallel queries: starting their
#: workers takes longer than a search, and the other cores have their own queries.
SESSION_SETTINGS = {
    "client_connection_check_interval": "10s",
    "idle_in_transaction_session_timeout": "120s",
    "max_parallel_workers_per_gather": "0",
    "timezone": "UTC",
}
#: Keepalives detect a dead link while nothing is sent; unacknowledged data needs a separate limit.
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
    """Return `default` for the application's role, and `owner` for migrations.

    With a single external URL, the application still drops rights that it does not need: its sessions start with SET
    ROLE.
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

MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "csp.middleware.CSPMiddleware",
    "harvester.portal.headers.remaining_headers",
    "harvester.portal.probes.answer_probes",
    "harvester.api.entry.answer_api",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "harvester.portal.requests.without_nul",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "axes.middleware.AxesMiddleware",
]

TEMPLATES: list[dict[str, Any]] = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ],
        },
    }
]

# Static files are served from the installed packages: no collectstatic is needed.
STATIC_URL = "/static/"
STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    "staticfiles": {"BACKEND": "harvester.portal.static_files.VersionedStaticFiles"},
}
WHITENOISE_USE_FINDERS = True
WHITENOISE_AUTOREFRESH = False
WHITENOISE_ALLOW_ALL_ORIGINS = False
#: URLs of static files contain the version, so browsers may cache them for a day.
WHITENOISE_MAX_AGE = 0 if CONFIG.debug else 86_400

# Only lists of pages are uploaded. Only small files are read, into memory: the default handlers would write any upload
# to the disk, even before authentication.
FILE_UPLOAD_HANDLERS = ["django.core.files.uploadhandler.MemoryFileUploadHandler"]
#: Bytes of a whole request with a file: `scraping.verbs.imports.MOST_BYTES` and the rest of the form.
FILE_UPLOAD_MAX_MEMORY_SIZE = 5 * 2**20 + 2**16

# Login.
LOGIN_URL = reverse_lazy("admin:login")
LOGIN_REDIRECT_URL = reverse_lazy("admin:index")
AUTHENTICATION_BACKENDS = ["axes.backends.AxesStandaloneBackend", "django.contrib.auth.backends.ModelBackend"]
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": "django.contrib.auth.password_validation.UserAttributeSimilarityValidator"},
    {"NAME": "django.contrib.auth.password_validation.MinimumLengthValidator", "OPTIONS": {"min_length": 10}},
    {"NAME": "django.contrib.auth.password_validation.CommonPasswordValidator"},
    {"NAME": "django.contrib.auth.password_validation.NumericPasswordValidator"},
]
AXES_FAILURE_LIMIT = 5
AXES_COOLOFF_TIME = timedelta(minutes=15)
AXES_LOCKOUT_PARAMETERS = [["username", "ip_address"]]
AXES_RESET_ON_SUCCESS = True
#: Attempts during a lockout must not extend it.
AXES_RESET_COOL_OFF_ON_FAILURE_DURING_LOCKOUT = False
AXES_CLIENT_IP_CALLABLE = "harvester.guards.clients.counted_address"
AXES_USERNAME_CALLABLE = "harvester.portal.access.tried_username"
AXES_LOCKOUT_CALLABLE = "harvester.portal.access.locked_out"
#: Logins are in the audit log.
AXES_DISABLE_ACCESS_LOG = True
AXES_ENABLE_ADMIN = False
AXES_VERBOSE = False

# Sessions and cookies. The prefix makes browsers reject a cookie that another host of the domain has set.
_prefix = "__Host-" if CONFIG.https else ""
SESSION_COOKIE_NAME = f"{_prefix}harvester_session"
SESSION_COOKIE_AGE = 12 * 3600
SESSION_COOKIE_SECURE = CONFIG.https
SESSION_COOKIE_SAMESITE = "Lax"
CSRF_COOKIE_NAME = f"{_prefix}harvester_csrf"
CSRF_COOKIE_SECURE = CONFIG.https
CSRF_COOKIE_HTTPONLY = True
CSRF_COOKIE_SAMESITE = "Lax"
CSRF_FAILURE_VIEW = "harvester.portal.errors.forged"
MESSAGE_STORAGE = "django.contrib.messages.storage.session.SessionStorage"

# The header of a proxy counts only if a proxy is configured.
SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https") if CONFIG.https else None
SECURE_HSTS_SECONDS = 365 * 86_400 if CONFIG.https else 0
SECURE_CONTENT_TYPE_NOSNIFF = True
SECURE_REFERRER_POLICY = "same-origin"
SECURE_CROSS_ORIGIN_OPENER_POLICY = "same-origin"
X_FRAME_OPTIONS = "DENY"

# No inline script, no inline style, no eval, no other hosts: docs/decisions/content-security-policy.md.
CONTENT_SECURITY_POLICY = {
    "DIRECTIVES": {
        "default-src": ["'self'"],
        "script-src": ["'self'"],
        "style-src": ["'self'"],
        "img-src": ["'self'", "data:"],
        "connect-src": ["'self'"],
        "object-src": ["'none'"],
        "base-uri": ["'self'"],
        "form-action": ["'self'"],
        "frame-ancestors": ["'none'"],
        "upgrade-insecure-requests": CONFIG.https,
    }
}
