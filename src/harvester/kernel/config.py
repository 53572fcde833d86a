"""Every setting, read from the environment once, trimmed and checked.

Nothing else in Harvester looks at the environment. `docs/settings.md` is printed from this table.
"""

import difflib
import hashlib
import ipaddress
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, fields
from dataclasses import field as dataclass_field
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

from harvester.kernel.errors import ConfigError

KEY_VARIABLE = "CREDENTIAL_ENCRYPTION_KEY_B64"
PREFIX = "HARVESTER_"
UNSET_HOME = Path()
HIGHEST_PORT = 65_535
#: What may stand behind the question mark of a database URL.
URL_OPTIONS = frozenset({
    "application_name", "channel_binding", "connect_timeout", "gssencmode", "host", "options", "port", "sslcert",
    "sslkey", "sslmode", "sslrootcert", "target_session_attrs", "tcp_user_timeout", "user",
})  # fmt: skip

Network = ipaddress.IPv4Network | ipaddress.IPv6Network


def setting(variable: str, help_text: str, default: Any = None, **limits: Any) -> Any:
    """Declare one setting: its variable, what it means, its default and its limits."""
    meta = {"variable": variable, "help": help_text, **limits}
    # Pages and traces for developers print whole objects; passwords stand in addresses too.
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
        "required with an external database, otherwise made in a file of mode 0600",
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
    web_threads: int = setting("HARVESTER_WEB_THREADS", "requests the portal answers at once", 8, low=1, high=256)
    allowed_hosts: tuple[str, ...] = setting(
        "HARVESTER_ALLOWED_HOSTS",
        "host names the portal answers to, separated by commas",
        ("localhost", "127.0.0.1", "[::1]"),
    )
    https: bool = setting(
        "HARVESTER_HTTPS", "the portal is reached by https (a proxy ends TLS): secure cookies and HSTS", False
    )
    metrics_token: str = setting(
        "HARVESTER_METRICS_TOKEN",
        "bearer token for /metrics; unset: only this machine may read it",
        "",
        secret=True,
    )
    api_rate_per_minute: int = setting(
        "HARVESTER_API_RATE_PER_MINUTE",
        "requests that each API key may make in a minute; a quarter of them may come at once",
        600,
        low=1,
        high=1_000_000,
    )
    api_read_seconds: float = setting(
        "HARVESTER_API_READ_SECONDS",
        "how long the database may work on one statement of a read over the API; then it is stopped and answered 503",
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
        "jobs one worker runs at once, besides one slot kept for decisions and ticks",
        8,
        low=1,
        high=512,
    )
    poll_seconds: float = setting(
        "HARVESTER_POLL_SECONDS",
        "how often a worker looks for jobs without being woken",
        5.0,
        low=0.05,
        high=300,
    )
    heartbeat_seconds: float = setting(
        "HARVESTER_HEARTBEAT_SECONDS", "how often a running job says that it lives", 20.0, low=0.05, high=300
    )
    stuck_seconds: float = setting(
        "HARVESTER_STUCK_SECONDS",
        "silence after which a running job counts as stuck",
        300.0,
        low=0.2,
        high=86400,
    )
    stale_check_seconds: float = setting(
        "HARVESTER_STALE_CHECK_SECONDS",
        "time between two looks for stuck jobs; a job is taken only after two looks",
        60.0,
        low=0.05,
        high=3600,
    )
    grace_seconds: float = setting(
        "HARVESTER_GRACE_SECONDS",
        "how long a stopping worker may take; its jobs may finish in all but the last 5 s of it",
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
        "HARVESTER_KEEP_RUNS_DAYS", "days that runs of feeds and the files they read are kept", 30, low=1, high=3650
    )  # mutant: keep-runs
    slack_webhook_url: str = setting(
        "HARVESTER_SLACK_WEBHOOK_URL",
        "incoming webhook of the Slack channel that alerts go to, https only; unset: alerts are only logged",
        "",
        secret=True,
    )
    egress_allow: tuple[str, ...] = setting(
        "HARVESTER_EGRESS_ALLOW",
        "private or otherwise special networks that Harvester may connect to, as 10.1.0.0/16,fd00:1::/32; "
        "unset: public addresses only",
        (),
    )
    allow_plain_ftp: bool = setting(
        "AFFILIATE_FEED_ALLOW_PLAIN_FTP",
        "feeds may be fetched by plain FTP, which sends credentials and files readable to anybody on the way",
        False,
    )

    @property
    def installation(self) -> str:
        """A short name for the installation with this home, which says nothing about where that is."""
        return hashlib.sha256(os.fsencode(os.path.realpath(self.home))).hexdigest()[:16]

    @property
    def embedded(self) -> bool:
        """Whether the database is the embedded one."""
        return not self.database_url

    @property
    def egress_networks(self) -> tuple[Network, ...]:
        """The networks of `egress_allow`."""
        return tuple(parse_network(text) for text in self.egress_allow)

    @property
    def listen_address(self) -> tuple[str, int]:
        host, _, port = self.listen.rpartition(":")
        return host, int(port)

    @classmethod
    def from_env(cls, env: Mapping[str, str], *, is_root: bool = False) -> "Config":
        """Read and check the settings; the first thing wrong is said in one line."""
        values = {name: value.strip() for name, value in env.items()}
        _refuse_unknown(values, {f.metadata["variable"] for f in fields(cls)})
        read: dict[str, Any] = {}
        for declared in fields(cls):
            text = values.get(declared.metadata["variable"], "")
            read[declared.name] = _read(declared.metadata, text, declared.default) if text else declared.default
        if read["home"] == UNSET_HOME:
            read["home"] = _default_home(values, is_root=is_root)
        config = cls(**read)
        _check(config)
        return config


def _refuse_unknown(values: Mapping[str, str], known: set[str]) -> None:
    """A misspelt name must not silently mean the default: the embedded database instead of production's."""
    for name in sorted(values):
        if name.startswith(PREFIX) and name not in known:
            near = difflib.get_close_matches(name, known, n=1)
            hint = f"did you mean {near[0]}?" if near else "`harvester doctor --settings` lists them all."
            raise ConfigError(f"There is no setting {name}; {hint}")


def _read(meta: Mapping[str, Any], text: str, default: Any) -> Any:
    kind = type(default)
    if kind is bool:
        return _read_bool(meta["variable"], text)
    if kind in (int, float):
        return _read_number(meta, text, kind)
    if kind is tuple:
        return tuple(part.strip() for part in text.split(",") if part.strip())
    if isinstance(default, Path):
        return Path(text).expanduser().absolute()
    if "choices" in meta and text.lower() not in meta["choices"]:
        raise ConfigError(f"{meta['variable']} is {text!r}; it must be one of {', '.join(meta['choices'])}.")
    return text.lower() if "choices" in meta else text


def _read_bool(variable: str, text: str) -> bool:
    words = {
        "1": True,
        "true": True,
        "yes": True,
        "on": True,
        "0": False,
        "false": False,
        "no": False,
        "off": False,
    }
    if text.lower() not in words:
        raise ConfigError(f"{variable} is {text!r}; it must be true or false.")
    return words[text.lower()]


def _read_number(meta: Mapping[str, Any], text: str, kind: type) -> Any:
    try:
        number = kind(text)
    except ValueError:
        number = None
    if number is None or not meta["low"] <= number <= meta["high"]:
        raise ConfigError(f"{meta['variable']} is {text!r}; it must be a number from {meta['low']} to {meta['high']}.")
    return number


def _default_home(values: Mapping[str, str], *, is_root: bool) -> Path:
    if is_root:
        return Path("/var/lib/harvester")
    if values.get("XDG_DATA_HOME"):
        return Path(values["XDG_DATA_HOME"]) / "harvester"
    return Path(values.get("HOME") or ".").absolute() / ".local" / "share" / "harvester"


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
    if config.stuck_seconds <= config.heartbeat_seconds * 2:
        raise ConfigError(
            "HARVESTER_STUCK_SECONDS must be more than twice HARVESTER_HEARTBEAT_SECONDS, "
            "or living jobs would look stuck."
        )


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
    """Read one network that the operator allows."""
    shape = f"{variable} has {text!r}; networks look like 10.1.0.0/16 or fd00:1::/32"
    try:
        network = ipaddress.ip_network(text, strict=False)
        address = ipaddress.ip_interface(text).ip
    except ValueError:
        raise ConfigError(f"{shape}.") from None
    if network.network_address != address:
        raise ConfigError(f"{shape}; an address inside a network was given: is {network} meant?")
    if network.prefixlen == 0:
        raise ConfigError(f"{shape}; this one holds every address and would end all protection. Name the networks.")
    return network


def parse_database_url(url: str, variable: str = "HARVESTER_DATABASE_URL") -> dict[str, Any]:
    """Split a database URL into psycopg's connection parameters, without ever printing its password."""
    # Written apart, because redaction takes whatever stands before an @ in an address for a secret.
    shape = f"{variable} must look like postgresql://HOST:5432/NAME, with USER:PASSWORD@ before HOST"
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        raise ConfigError(f"{shape}; its host or port cannot be read.") from None
    if parts.scheme not in ("postgresql", "postgres"):
        raise ConfigError(
            f"{shape}; it begins with {parts.scheme!r}." if parts.scheme else f"{shape}; it has no scheme."
        )
    name = unquote(parts.path.lstrip("/"))
    if not name:
        raise ConfigError(f"{shape}; the name of the database is missing.")
    options = dict(parse_qsl(parts.query))
    unknown = sorted(set(options) - URL_OPTIONS)
    if unknown:
        raise ConfigError(f"{variable} has the option {unknown[0]!r}; known are {', '.join(sorted(URL_OPTIONS))}.")
    if "\x00" in unquote(url):
        raise ConfigError(f"{shape}; it holds a NUL character.")
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
