"""Findings, and the checks that need no database."""

import json
import os
import platform
import shutil
import sys
from collections.abc import Callable
from dataclasses import asdict, dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

from harvester.cli.exit_codes import one_line
from harvester.kernel.config import Config
from harvester.kernel.errors import HarvesterError


class State(StrEnum):
    """The severity of a finding."""

    OK = "ok"
    WARN = "warn"  # works, but needs attention
    FAIL = "fail"  # Harvester cannot work
    SKIP = "skip"  # not checked, because an earlier check failed or nothing exists yet


@dataclass(frozen=True, kw_only=True)
class Finding:
    """One line of the doctor's table.

    Attributes:
        check: what was checked.
        state: the severity.
        finding: the result.
        advice: what to do.
    """

    check: str
    state: State
    finding: str
    advice: str = ""

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


def fine(check: str, finding: str) -> Finding:
    return Finding(check=check, state=State.OK, finding=finding)


def warn(check: str, finding: str, advice: str) -> Finding:
    return Finding(check=check, state=State.WARN, finding=finding, advice=advice)


def fail(check: str, finding: str, advice: str = "") -> Finding:
    return Finding(check=check, state=State.FAIL, finding=finding, advice=advice)


def skip(check: str, because: str) -> Finding:
    return Finding(check=check, state=State.SKIP, finding=because)


OLDEST_PYTHON, FIRST_UNKNOWN_PYTHON = (3, 11), (3, 14)
MEGABYTE = 1 << 20
#: With less than the first, PostgreSQL may soon stop writing; with less than the second, a large catalog may not fit.
LEAST_DISK, ENOUGH_DISK = 256 * MEGABYTE, 2048 * MEGABYTE
BROWSERS = ("chromium", "chromium-browser")
ANSWER_SECONDS = 3


def python() -> Finding:
    version = platform.python_version()
    if OLDEST_PYTHON <= sys.version_info[:2] < FIRST_UNKNOWN_PYTHON:
        return fine("python", f"{version} in {sys.prefix}")
    return fail("python", version, "Use Python 3.11, 3.12 or 3.13.")


def chromium() -> Finding:
    found = next(filter(None, map(shutil.which, BROWSERS)), None)
    if found:
        return fine("chromium", found)
    return warn("chromium", "not installed; only the browser tests need it", "To run them: apt-get install chromium")


def home(config: Config) -> Finding:
    place = _nearest(config.home)
    if not os.access(place, os.W_OK | os.X_OK):
        advice = "Make it writable for this user, or set HARVESTER_HOME to another directory."
        return fail("home", f"{config.home} is not writable", advice)
    return fine("home", str(config.home) if place == config.home else f"{config.home} (will be created)")


def disk(config: Config) -> Finding:
    free = shutil.disk_usage(_nearest(config.home)).free
    space = f"{free / (1 << 30):.1f} GB free at {config.home}"
    if free < LEAST_DISK:
        return fail("disk", space, "Free some disk space, or move HARVESTER_HOME.")
    if free < ENOUGH_DISK:
        return warn("disk", space, "Free some disk space before you import large catalogs.")
    return fine("disk", space)


def key(config: Config) -> Finding:
    from harvester.guards.vault import KEY_FILE_NAME, key_ring

    source = "CREDENTIAL_ENCRYPTION_KEY_B64" if config.encryption_keys else str(config.home / KEY_FILE_NAME)
    if not config.encryption_keys and not (config.home / KEY_FILE_NAME).exists():
        return fine("encryption key", f"will be created in {source}")
    ring = key_ring(config)
    others = f", also decrypts with {', '.join(ring.key_ids[1:])}" if len(ring.key_ids) > 1 else ""
    return fine("encryption key", f"{source}: encrypts with {ring.writing_id}{others}")


def redis(config: Config) -> Finding:
    if not config.redis_url:
        return fine("redis", "not configured; not needed")
    from harvester.guards.redis_client import ping

    try:
        ping(config.redis_url)
    except HarvesterError as error:
        return fail("redis", one_line(error))
    return fine("redis", "reachable")


def contact(config: Config) -> Finding:
    if config.scrape_contact_url and config.scrape_contact_mail:
        return fine("contact", f"{config.scrape_contact_url}, {config.scrape_contact_mail}")
    return Finding(
        check="contact",
        state=State.OK,
        finding="not configured; no product page is read",
        advice="To read product pages, set HARVESTER_SCRAPE_CONTACT_URL and HARVESTER_SCRAPE_CONTACT_MAIL.",
    )


def portal(config: Config) -> Finding:
    from harvester.cli.portal_server import bind

    try:
        bind(config.listen).close()
    except HarvesterError as error:
        answering = _installation_at(config.listen)
        if answering == config.installation:
            return fine("portal", f"running on {config.listen}")
        if answering is not None:
            conflict = f"another Harvester installation is running on {config.listen}, not the one in {config.home}"
            return fail("portal", conflict, "Set HARVESTER_HOME to its home, or HARVESTER_LISTEN to a free port.")
        return fail("portal", one_line(error))
    return fine("portal", f"not running; {config.listen} is free")


def _installation_at(listen: str) -> str | None:
    """Return the name of the Harvester installation that responds at the address, or None."""
    import http.client

    from harvester.cli.up import local_address

    host, _, port = local_address(listen).rpartition(":")
    connection = http.client.HTTPConnection(host.strip("[]"), int(port), timeout=ANSWER_SECONDS)
    try:
        connection.request("GET", "/healthz")
        answer = connection.getresponse()
        is_alive = json.loads(answer.read(1000)).get("status") == "alive"
        return answer.getheader("Harvester-Installation", "") if is_alive else None
    except (OSError, ValueError, AttributeError, http.client.HTTPException):
        return None
    finally:
        connection.close()


def _nearest(path: Path) -> Path:
    """Return the path or, if it does not exist yet, its nearest existing parent."""
    return next(place for place in (path, *path.parents) if place.exists())


CHECKS: dict[str, Callable[[Config], Finding]] = {
    "home": home,
    "disk": disk,
    "encryption key": key,
    "redis": redis,
    "contact": contact,
    "portal": portal,
}
