"""The demo's directory with its data, login and log, separate from everything else on this machine."""

import hashlib
import os
import secrets
import tempfile
from collections.abc import MutableMapping
from dataclasses import dataclass
from pathlib import Path

from harvester.engine.embedded.layout import Layout
from harvester.engine.embedded.places import make_home
from harvester.engine.embedded.users import server_user
from harvester.kernel.config import KEY_VARIABLE
from harvester.kernel.errors import Conflict

USERNAME = "demo"
LOGIN_FILE = "demo-login.txt"
LOG_FILE = "demo.log"
PARTNER_DIRECTORY = "partner"

#: Used if the database server's user cannot enter the current directory.
PLACES = (Path("/var/lib"), Path(tempfile.gettempdir()))
#: Ignored, so that a demo in a terminal that is configured for production does not touch production.
NOT_FOR_THE_DEMO = (
    "HARVESTER_DATABASE_URL", "HARVESTER_OWNER_DATABASE_URL", "HARVESTER_REDIS_URL", KEY_VARIABLE, "WORKER_ID",
    "HARVESTER_SLACK_WEBHOOK_URL",
)  # fmt: skip
#: A killed worker's job is reassigned within seconds instead of minutes.
FAST = {
    "HARVESTER_HEARTBEAT_SECONDS": "0.5",
    "HARVESTER_STUCK_SECONDS": "3",
    "HARVESTER_STALE_CHECK_SECONDS": "1",
    "HARVESTER_POLL_SECONDS": "1",
    "HARVESTER_GRACE_SECONDS": "5",
    "HARVESTER_LOG_FORMAT": "console",
}
#: The demo's partner and its shop are servers on this machine, to which nothing may connect by default.
EGRESS = {"HARVESTER_EGRESS_ALLOW": "127.0.0.1/32"}
#: Whom a shop can write to; nothing is read without it.
CONTACT = {
    "HARVESTER_SCRAPE_CONTACT_URL": "https://harvester.example/bot",
    "HARVESTER_SCRAPE_CONTACT_MAIL": "bot@harvester.example",
}


@dataclass(frozen=True, kw_only=True)
class DemoHome:
    """The directory of one demo.

    Attributes:
        path: the directory.
        password: of the user `demo`.
        is_new: no earlier demo has used it.
        remarks: notes for people about the choice of the directory.
    """

    path: Path
    password: str
    is_new: bool
    remarks: tuple[str, ...] = ()

    @property
    def login_file(self) -> Path:
        return self.path / LOGIN_FILE

    @property
    def log_file(self) -> Path:
        return self.path / LOG_FILE

    @property
    def partner_directory(self) -> Path:
        return self.path / PARTNER_DIRECTORY


def prepare_home(env: MutableMapping[str, str]) -> DemoHome:
    """Choose and create the home, and set it in the environment of this process and its children."""
    path, remarks = _choose(env)
    ignored = [name for name in NOT_FOR_THE_DEMO if env.pop(name, "").strip()]
    if ignored:
        remarks.append(f"The demo ignores these settings: {', '.join(ignored)}.")
    is_new = not (path / LOGIN_FILE).exists()
    if is_new and Layout.of(path).data.exists():
        raise Conflict(
            f"{path} contains a database that was not created by the demo. Nothing was changed. "
            "Unset HARVESTER_HOME, or set it to an empty directory."
        )
    make_home(path)
    env.update({**FAST, **EGRESS, **CONTACT, "HARVESTER_HOME": str(path)})
    return DemoHome(path=path, password=_password(path / LOGIN_FILE), is_new=is_new, remarks=tuple(remarks))


def _choose(env: MutableMapping[str, str]) -> tuple[Path, list[str]]:
    if env.get("HARVESTER_HOME", "").strip():
        return Path(env["HARVESTER_HOME"].strip()).expanduser().absolute(), []
    here = Path.cwd() / ".demo"
    if os.geteuid() != 0 or _reachable(here, env):
        return here, []
    digest = hashlib.sha256(os.fsencode(here)).hexdigest()[:8]
    base = next((base for base in PLACES if base.is_dir() and _reachable(base / "demo", env)), PLACES[-1])
    place = base / f"harvester-demo-{digest}"
    return place, [f"As root, the database runs as an unprivileged user who cannot enter {here.parent}; using {place}."]


def _reachable(home: Path, env: MutableMapping[str, str]) -> bool:
    user = server_user(Layout.of(home).data, env.get("HARVESTER_DATABASE_OS_USER", "").strip())
    return user.can_enter(home if home.is_dir() else home.parent)


def _password(file: Path) -> str:
    """Return the password, which is created once, at random, in a file that only this user can read."""
    if not file.exists():
        draft = file.with_name(f".{file.name}.{os.getpid()}")
        descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "w", encoding="ascii") as opened:
            opened.write(f"{USERNAME} {secrets.token_urlsafe(12)}\n")
        draft.replace(file)
    return file.read_text(encoding="ascii").split()[1]
