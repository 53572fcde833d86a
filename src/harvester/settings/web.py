"""The portal's half of Django's settings: templates, static files, login, security headers."""

from datetime import timedelta
from typing import Any

from django.urls import reverse_lazy

from harvester.settings import CONFIG

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

# Static files come straight out of the installed packages: there is no collectstatic step to forget.
STATIC_URL = "/static/"
STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    "staticfiles": {"BACKEND": "harvester.portal.static_files.VersionedStaticFiles"},
}
WHITENOISE_USE_FINDERS = True
WHITENOISE_AUTOREFRESH = False
WHITENOISE_ALLOW_ALL_ORIGINS = False
#: Addresses of static files carry the version, so a browser may keep them for a day.
WHITENOISE_MAX_AGE = 0 if CONFIG.debug else 86_400

# Nobody uploads anything. Only small files are read at all, into memory: the usual handlers would write whatever comes
# to the disk, and do so before they know who sent it.
FILE_UPLOAD_HANDLERS = ["django.core.files.uploadhandler.MemoryFileUploadHandler"]

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
#: Trying on while locked out must not lock a person out for ever.
AXES_RESET_COOL_OFF_ON_FAILURE_DURING_LOCKOUT = False
AXES_CLIENT_IP_CALLABLE = "harvester.guards.clients.counted_address"
AXES_USERNAME_CALLABLE = "harvester.portal.access.tried_username"
AXES_LOCKOUT_CALLABLE = "harvester.portal.access.locked_out"
#: Who came in stands in the audit trail.
AXES_DISABLE_ACCESS_LOG = True
AXES_ENABLE_ADMIN = False
AXES_VERBOSE = False

# Sessions and cookies. The prefix makes browsers refuse a cookie that another host of the domain planted.
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

# A proxy's word counts only where the operator said that one is there.
SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https") if CONFIG.https else None
SECURE_HSTS_SECONDS = 365 * 86_400 if CONFIG.https else 0
SECURE_CONTENT_TYPE_NOSNIFF = True
SECURE_REFERRER_POLICY = "same-origin"
SECURE_CROSS_ORIGIN_OPENER_POLICY = "same-origin"
X_FRAME_OPTIONS = "DENY"

# No inline script, no inline style, no eval, nothing from elsewhere: docs/decisions/content-security-policy.md.
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
