"""All settings, read from the environment once, trimmed and checked.

Nothing else in Harvester reads the environment. `docs/settings.md` is generated from this table.
"""

import difflib
import hashlib
import ipaddress
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, fields
from dataclasses import field as dataclass_field
from functools import cached_property
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

from harvester.kernel.errors import ConfigError

KEY_VARIABLE = "CREDENTIAL_ENCRYPTION_KEY_B64"
PREFIX = "HARVESTER_"
UNSET_HOME = Path()
HIGHEST_PORT = 65_535
BOOLEANS = {**dict.fromkeys(("1", "true", "yes", "on"), True), **dict.fromkeys(("0", "false", "no", "off"), False)}
#: Options allowed in the query of a database URL.
URL_OPTIONS = frozenset({
    "application_name", "channel_binding", "connect_timeout", "gssencmode", "host", "options", "port", "sslcert",
    "sslkey", "sslmode", "sslrootcert", "target_session_attrs", "tcp_user_timeout", "user",
})  # fmt: skip

Network = ipaddress.IPv4Network | ipaddress.IPv6Network


def setting(variable: str, help_text: str, default: Any = None, **limits: Any) -> Any:
    """Declare one setting: its variable, help text, default and limits."""
    meta = {"variable": variable, "help": help_text, **limits}
    # Debug pages and tracebacks print whole objects, and URLs can hold passwords too.
    is_open = not limits.get("secret") and not variable.endswith("_URL")
    return dataclass_field(default=default, metadata=meta, repr=is_open)


@dataclass(frozen=True, kw_only=True)
class Config:
    """The settings of one process."""

    home: Path = setting(
        "HARVESTER_HOME",
        "directory of the embedded database, the key file and artifacts; "
        "default: /var/lib/harvester as root, else $XDG_DATA_HOME/harvester or ~/.local/share/harvester",
        UNSET_HOME,
    )
    database_url: str = setting(
        "HARVESTER_DATABASE_URL",
        "an external PostgreSQL (16 or newer) as postgresql://user:password@host:port/name; "
        "unset: the embedded database",
        "",
    )
    owner_database_url: str = setting(
        "HARVESTER_OWNER_DATABASE_URL",
        "the same database as the role that owns the tables, used by `harvester migrate` only; "
        "unset: HARVESTER_DATABASE_URL",
        "",
    )
    redis_url: str = setting(
        "HARVESTER_REDIS_URL",
        "redis://host:port/db for rate limits shared by all workers; unset: PostgreSQL",
        "",
    )
    encryption_keys: str = setting(
        KEY_VARIABLE,
        "32 bytes in base64 that seal credentials, or several as `id:key,id:key` (the first writes, all read); "
        "required with an external database, otherwise created in a file of mode 0600",
        "",
        secret=True,
    )
    secret_key: str = setting(
        "HARVESTER_SECRET_KEY",
        "signs sessions; unset: derived from the encryption key",
        "",
        secret=True,
    )
    debug: bool = setting("HARVESTER_DEBUG", "show tracebacks in the browser; never in production", False)
    listen: str = setting("HARVESTER_LISTEN", "address and port of the portal", "127.0.0.1:8000")
    web_threads: int = setting("HARVESTER_WEB_THREADS", "requests the portal serves in parallel", 8, low=1, high=256)
    allowed_hosts: tuple[str, ...] = setting(
        "HARVESTER_ALLOWED_HOSTS",
        "host names the portal answers to, separated by commas",
        ("localhost", "127.0.0.1", "[::1]"),
    )
    https: bool = setting(
        "HARVESTER_HTTPS", "the portal is reached over https (a proxy terminates TLS): secure cookies and HSTS", False
    )
    metrics_token: str = setting(
        "HARVESTER_METRICS_TOKEN",
        "bearer token for /metrics; unset: readable from this machine only",
        "",
        secret=True,
    )
    api_rate_per_minute: int = setting(
        "HARVESTER_API_RATE_PER_MINUTE",
        "requests per minute for each API key; a quarter of them may come in one burst",
        600,
        low=1,
        high=1_000_000,
    )
    api_read_seconds: float = setting(
        "HARVESTER_API_READ_SECONDS",
        "statement timeout of API reads; a statement that takes longer is canceled and the answer is 503",
        10.0,
        low=0.05,
        high=300,
    )
    log_level: str = setting(
        "HARVESTER_LOG_LEVEL",
        "the least severe event that is logged",
        "info",
        choices=("debug", "info", "warning", "error"),
    )
    log_format: str = setting(
        "HARVESTER_LOG_FORMAT",
        "json, console, or auto (console on a terminal)",
        "auto",
        choices=("auto", "json", "console"),
    )
    database_os_user: str = setting(
        "HARVESTER_DATABASE_OS_USER",
        "the unprivileged user that runs the embedded server when Harvester runs as root; "
        "unset: postgres if there is one, else nobody",
        "",
    )
    worker_id: str = setting("WORKER_ID", "name of this worker; unset: host name plus random", "")
    worker_threads: int = setting(
        "HARVESTER_WORKER_THREADS",
        "jobs one worker runs in parallel, plus one slot reserved for decisions and ticks",
        8,
        low=1,
        high=512,
    )
    poll_seconds: float = setting(
        "HARVESTER_POLL_SECONDS",
        "how often a worker looks for jobs without being notified",
        5.0,
        low=0.05,
        high=300,
    )
    heartbeat_seconds: float = setting(
        "HARVESTER_HEARTBEAT_SECONDS", "time between heartbeats of a running job", 20.0, low=0.05, high=300
    )
    stuck_seconds: float = setting(
        "HARVESTER_STUCK_SECONDS",
        "time without a heartbeat after which a running job counts as stuck",
        300.0,
        low=0.2,
        high=86400,
    )
    stale_check_seconds: float = setting(
        "HARVESTER_STALE_CHECK_SECONDS",
        "time between checks for stuck jobs; a job is rescued only after two checks",
        60.0,
        low=0.05,
        high=3600,
    )
    grace_seconds: float = setting(
        "HARVESTER_GRACE_SECONDS",
        "how long a stopping worker may take; its jobs may run until 5 s before the end",
        30.0,
        low=0,
        high=3600,
    )
    keep_succeeded_days: int = setting(
        "HARVESTER_KEEP_SUCCEEDED_DAYS",
        "days that succeeded and cancelled jobs are kept",
        7,
        low=1,
        high=3650,
    )
    keep_failed_days: int = setting(
        "HARVESTER_KEEP_FAILED_DAYS", "days that failed jobs are kept", 30, low=1, high=3650
    )
    keep_alerts_days: int = setting(
        "HARVESTER_KEEP_ALERTS_DAYS", "days that resolved alerts are kept", 90, low=1, high=3650
    )  # mutant: keep-alerts
    keep_runs_days: int = setting(
        "HARVESTER_KEEP_RUNS_DAYS", "days that feed runs and their files are kept", 30, low=1, high=3650
    )  # mutant: keep-runs
    keep_pages_gb: float = setting(
        "HARVESTER_KEEP_PAGES_GB",
        "gigabytes of shop pages that are kept, compressed; above that the oldest unimportant ones are deleted",
        20.0,
        low=0.001,
        high=100_000,
    )
    slack_webhook_url: str = setting(
        "HARVESTER_SLACK_WEBHOOK_URL",
        "incoming webhook of the Slack channel that alerts go to, https only; unset: alerts are only logged",
        "",
        secret=True,
    )
    scrape_pending_per_source: int = setting(
        "HARVESTER_SCRAPE_PENDING_PER_SOURCE",
        "pages of one source that may wait to be read; more are rejected until some were read",
        1_000,
        low=1,
        high=1_000_000,
    )
    scrape_pending: int = setting(
        "HARVESTER_SCRAPE_PENDING",
        "pages of all sources together that may wait to be read",
        10_000,
        low=1,
        high=10_000_000,
    )
    egress_allow: tuple[str, ...] = setting(
        "HARVESTER_EGRESS_ALLOW",
        "private or other special networks that Harvester may connect to, such as 10.1.0.0/16,fd00:1::/32; "
        "unset: public addresses only",
        (),
    )
    scrape_contact_url: str = setting(
        "HARVESTER_SCRAPE_CONTACT_URL",
        "page that shows shops who reads their pages, https; sent with each request; unset: no pages are read",
        "",
    )
    scrape_contact_mail: str = setting(
        "HARVESTER_SCRAPE_CONTACT_MAIL",
        "mail address for shops; sent with each request; unset: no pages are read",
        "",
    )
    allow_plain_ftp: bool = setting(
        "AFFILIATE_FEED_ALLOW_PLAIN_FTP",
        "allow feeds over plain FTP, which sends credentials and files unencrypted",
        False,
    )

    @property
    def installation(self) -> str:
        """A short name for the installation with this home, which does not reveal the path."""
        return hashlib.sha256(os.fsencode(os.path.realpath(self.home))).hexdigest()[:16]

    @property
    def embedded(self) -> bool:
        """Whether the database is the embedded one."""
        return not self.database_url

    @cached_property
    def egress_networks(self) -> tuple[Network, ...]:
        return tuple(parse_network(text) for text in self.egress_allow)

    @property
    def listen_address(self) -> tuple[str, int]:
        host, _, port = self.listen.rpartition(":")
        return host, int(port)

    @classmethod
    def from_env(cls, env: Mapping[str, str], *, is_root: bool = False) -> "Config":
        """Read and check the settings; the first problem is raised as one line."""
        values = {name: value.strip() for name, value in env.items()}
        known = {declared.metadata["variable"] for declared in fields(cls)}
        # A misspelled name must not silently mean the default: the embedded database instead of production's.
        for name in sorted(values):
            if name.startswith(PREFIX) and name not in known:
                near = difflib.get_close_matches(name, known, n=1)
                hint = f"did you mean {near[0]}?" if near else "`harvester doctor --settings` lists them all."
                raise ConfigError(f"There is no setting {name}; {hint}")
        read: dict[str, Any] = {}
        for declared in fields(cls):
            text = values.get(declared.metadata["variable"], "")
            read[declared.name] = _read(declared.metadata, text, declared.default) if text else declared.default
        if read["home"] == UNSET_HOME:
            data_home = values.get("XDG_DATA_HOME") or Path(values.get("HOME") or ".").absolute() / ".local" / "share"
            read["home"] = Path("/var/lib/harvester") if is_root else Path(data_home) / "harvester"
        config = cls(**read)
        _check(config)
        return config


def _read(meta: Mapping[str, Any], text: str, default: Any) -> Any:
    kind = type(default)
    if kind is bool:
        if text.lower() not in BOOLEANS:
            raise ConfigError(f"{meta['variable']} is {text!r}; it must be true or false.")
        return BOOLEANS[text.lower()]
    if kind in (int, float):
        try:
            number = kind(text)
        except ValueError:
            number = None
        if number is None or not meta["low"] <= number <= meta["high"]:
            limits = f"from {meta['low']} to {meta['high']}"
            raise ConfigError(f"{meta['variable']} is {text!r}; it must be a number {limits}.")
        return number
    if kind is tuple:
        return tuple(part.strip() for part in text.split(",") if part.strip())
    if isinstance(default, Path):
        return Path(text).expanduser().absolute()
    if "choices" in meta and text.lower() not in meta["choices"]:
        raise ConfigError(f"{meta['variable']} is {text!r}; it must be one of {', '.join(meta['choices'])}.")
    return text.lower() if "choices" in meta else text


def _check(config: Config) -> None:
    for variable, url in (
        ("HARVESTER_DATABASE_URL", config.database_url),
        ("HARVESTER_OWNER_DATABASE_URL", config.owner_database_url),
    ):
        if url:
            parse_database_url(url, variable)
    if config.owner_database_url and not config.database_url:
        raise ConfigError("HARVESTER_OWNER_DATABASE_URL is set without HARVESTER_DATABASE_URL; set both or none.")
    if config.database_url and not config.encryption_keys:
        raise ConfigError(
            f"{KEY_VARIABLE} is missing; with an external database every process needs the same key. "
            "Make one with: harvester keys generate"
        )
    if config.redis_url:
        _check_redis_url(config.redis_url)
    if not re.fullmatch(r".+:\d{1,5}", config.listen) or not 0 <= config.listen_address[1] <= HIGHEST_PORT:
        raise ConfigError(f"HARVESTER_LISTEN is {config.listen!r}; it must look like 127.0.0.1:8000.")
    for text in config.egress_allow:
        parse_network(text)
    if config.slack_webhook_url and not re.fullmatch(r"https://[^\s/@]+/\S+", config.slack_webhook_url):
        raise ConfigError("HARVESTER_SLACK_WEBHOOK_URL must look like https://HOST/PATH, as Slack shows it.")
    _check_contact(config)
    if config.stuck_seconds <= config.heartbeat_seconds * 2:
        raise ConfigError(
            "HARVESTER_STUCK_SECONDS must be more than twice HARVESTER_HEARTBEAT_SECONDS, "
            "or running jobs would look stuck."
        )


def _check_contact(config: Config) -> None:
    if config.scrape_contact_url and not re.fullmatch(r"https?://[!-~]+\.[!-~]+", config.scrape_contact_url):
        raise ConfigError("HARVESTER_SCRAPE_CONTACT_URL must look like https://HOST/PATH.")
    if config.scrape_contact_mail and not re.fullmatch(r"[!-~]+@[!-~]+\.[!-~]+", config.scrape_contact_mail):
        raise ConfigError("HARVESTER_SCRAPE_CONTACT_MAIL must look like NAME@HOST.")


def _check_redis_url(url: str) -> None:
    shape = "HARVESTER_REDIS_URL must look like redis://HOST:6379/0, rediss://HOST:6379/0 or unix:///PATH"
    try:
        parts = urlsplit(url)
        readable = parts.scheme == "unix" or (bool(parts.hostname) and (parts.port is None or parts.port > 0))
    except ValueError:
        readable = False
    if not readable or parts.scheme not in ("redis", "rediss", "unix"):
        raise ConfigError(f"{shape}.")
    if parts.scheme != "unix" and not re.fullmatch(r"/?\d*", parts.path):
        raise ConfigError(f"{shape}; the database must be a number.")


def parse_network(text: str, variable: str = "HARVESTER_EGRESS_ALLOW") -> Network:
    """Read one allowed network."""
    shape = f"{variable} has {text!r}; networks look like 10.1.0.0/16 or fd00:1::/32"
    try:
        network = ipaddress.ip_network(text, strict=False)
        address = ipaddress.ip_interface(text).ip
    except ValueError:
        raise ConfigError(f"{shape}.") from None
    if network.network_address != address:
        raise ConfigError(f"{shape}; this is an address inside a network. Did you mean {network}?")
    if network.prefixlen == 0:
        raise ConfigError(
            f"{shape}; this one contains every address and would remove all protection. Name the networks."
        )
    return network


def parse_database_url(url: str, variable: str = "HARVESTER_DATABASE_URL") -> dict[str, Any]:
    """Split a database URL into psycopg's connection parameters; errors never contain its password."""
    # The example has no USER:PASSWORD@ inside, because redaction hides everything before an @ in a URL.
    shape = f"{variable} must look like postgresql://HOST:5432/NAME, with USER:PASSWORD@ before HOST"
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        raise ConfigError(f"{shape}; its host or port cannot be read.") from None
    if parts.scheme not in ("postgresql", "postgres"):
        raise ConfigError(
            f"{shape}; it starts with {parts.scheme!r}." if parts.scheme else f"{shape}; it has no scheme."
        )
    name = unquote(parts.path.lstrip("/"))
    if not name:
        raise ConfigError(f"{shape}; the name of the database is missing.")
    options = dict(parse_qsl(parts.query))
    unknown = sorted(set(options) - URL_OPTIONS)
    if unknown:
        raise ConfigError(f"{variable} has the option {unknown[0]!r}; known are {', '.join(sorted(URL_OPTIONS))}.")
    if "\x00" in unquote(url):
        raise ConfigError(f"{shape}; it contains a NUL character.")
    found = {
        "dbname": name,
        "user": unquote(parts.username or ""),
        "password": unquote(parts.password or ""),
        "host": unquote(parts.hostname or "") or options.pop("host", ""),
        "port": port or options.pop("port", ""),
    }
    if not found["host"]:
        raise ConfigError(f"{shape}; the host is missing.")
    return {**{key: value for key, value in found.items() if value}, **options}
