"""Settings and states of a feed as text for people. Of its credentials only the names are shown."""

from dataclasses import dataclass
from typing import Any, Final

from harvester.feeds.fetch import MAX_FILE_BYTES
from harvester.feeds.models import Feed
from harvester.feeds.networks import networks
from harvester.feeds.partner_connection import port_of
from harvester.feeds.reader import ParseLimits
from harvester.feeds.settings import THRESHOLDS
from harvester.feeds.states import FeedStatus, Transport
from harvester.guards.host_keys import HostKey
from harvester.kernel.errors import InvalidInput
from harvester.kernel.stock import UnknownStock
from harvester.runs.models import Run

STATUS: Final = {
    FeedStatus.DRAFT: "Not set up yet, so it does not run.",
    FeedStatus.PAUSED: "Paused by admin. It runs again when it is resumed.",
    FeedStatus.DISABLED: "Disabled due to repeated failures. Fix the problem; then an admin can re-enable it.",
}
SECRETS: Final = {"password": "Password", "private_key": "Private key", "passphrase": "Passphrase"}
MEGABYTE: Final = 1024 * 1024
_DETECTED: Final = "detected from the file"
#: Meaning of an unknown stock text -> its label.
UNKNOWN_STOCK: Final = {
    UnknownStock.IN_STOCK.value: "in stock",
    UnknownStock.OUT_OF_STOCK.value: "out of stock",
    UnknownStock.REJECT.value: "row rejected",
}
#: Threshold -> its label, in the order of the gates.
THRESHOLD_LABELS: Final = {
    "expiry_share": "Missing products (share)",
    "expiry_least": "Minimum missing products",
    "expiry_most": "Maximum missing products",
    "url_hash_share": "Products without ID (share)",
    "url_hash_most": "Maximum products without ID",
    "shock_move": "Price shock (move)",
    "shock_share": "Price shocks (share)",
    "shock_least": "Minimum price shocks",
    "reject_share": "Rejected rows (share)",
    "reject_least": "Minimum rejected rows",
}


@dataclass(frozen=True, kw_only=True)
class Fact:
    """A setting.

    Attributes:
        name: its label.
        value: its value as text; empty if it has none.
        is_default: whether it was never set.
    """

    name: str
    value: str
    is_default: bool = False


def about(feed: Feed) -> str:
    """Return the meaning of the feed's status in a sentence."""
    if feed.retired_at is not None:
        return f"Retired on {feed.retired_at:%Y-%m-%d}. It cannot be used again; its runs and prices are kept."
    if feed.status != FeedStatus.ENABLED:
        return STATUS[FeedStatus(feed.status)]
    return f"Runs every {feed.schedule_hours} h." if feed.schedule_hours else "Runs only when started manually."


def network(name: str) -> str:
    """Return the label of a network, or its name if this version does not have it."""
    known = networks().get(name)
    return known.label if known else name


def schedule(feed: Feed) -> str:
    return f"Every {feed.schedule_hours} h" if feed.schedule_hours else "Manual"


def outcome(run: Run) -> str:
    """Return the state of a run that matters most."""
    return "IGNORED" if run.ignored_at else run.outcome or run.status


def sections(feed: Feed) -> dict[str, list[Fact]]:
    hours, limits = feed.source.expiry_hours, ParseLimits()
    size = feed.max_file_bytes or MAX_FILE_BYTES
    separator = {".": "point", ",": "comma"}.get(feed.decimal_style, _DETECTED)
    unchanged = "counts as seen" if feed.unchanged_means_seen else "offers still expire"
    without_id = "accepted" if feed.accepts_url_identity else "held if there are many"
    stock_is_default = feed.unknown_stock == UnknownStock.IN_STOCK
    return {
        "Server": [
            Fact(name="Transport", value=feed.transport),
            Fact(name="Host", value=feed.host),
            Fact(name="Port", value=str(port_of(feed)), is_default=feed.port is None),
            Fact(name="Path", value=feed.path),
            Fact(name="Username", value=feed.username),
        ],
        "Schedule and freshness": [
            Fact(name="Schedule", value=schedule(feed)),
            Fact(name="Offers expire", value=f"{hours} h after last seen" if hours else ""),
            Fact(name="Unchanged file", value=unchanged),
        ],
        "File": [
            Fact(name="Compression", value=feed.compression.capitalize()),
            Fact(name="Encoding", value=feed.encoding or _DETECTED, is_default=not feed.encoding),
            Fact(name="Default currency", value=feed.default_currency),
            Fact(name="Decimal separator", value=separator, is_default=not feed.decimal_style),
            Fact(name="Unknown stock text", value=UNKNOWN_STOCK[feed.unknown_stock], is_default=stock_is_default),
            Fact(name="Kept link parameters", value=", ".join(feed.kept_parameters)),
            Fact(name="Manifest", value="compared if available" if feed.use_manifest else "not used"),
            Fact(name="Products without ID", value=without_id),
        ],
        "Limits": [
            Fact(name="File size", value=f"{size / MEGABYTE:,.10g} MB", is_default=feed.max_file_bytes is None),
            Fact(name="Rows", value=f"{feed.max_rows or limits.rows:,}", is_default=feed.max_rows is None),
            Fact(
                name="Products",
                value=f"{feed.max_products or limits.products:,}",
                is_default=feed.max_products is None,
            ),
        ],
    }


def thresholds(feed: Feed) -> list[Fact]:
    facts = []
    for name, label in THRESHOLD_LABELS.items():
        number = feed.thresholds.get(name, THRESHOLDS[name])
        value = f"{100 * number:g} %" if name.endswith(("_share", "_move")) else f"{number:,}"
        facts.append(Fact(name=label, value=value, is_default=name not in feed.thresholds))
    return facts


def secrets(feed: Feed) -> list[tuple[str, bool]]:
    """Return the parts of the credentials, and whether each is set. FTP has only a password."""
    usable = [name for name in SECRETS if feed.transport == Transport.SFTP or name == "password"]
    return [(SECRETS[name], name in feed.secret_fields) for name in usable]


def host_keys(feed: Feed) -> dict[str, Any] | None:
    """Return the approved keys of the server, and one to approve. Only SFTP has host keys."""
    if feed.transport != Transport.SFTP:
        return None
    approved, seen = _parse_keys(feed.host_keys), _parse_keys(feed.seen_host_key)
    waiting = next((key for key in seen if key not in approved), None)
    return {"approved": approved, "waiting": waiting}


def _parse_keys(lines: str) -> list[HostKey]:
    try:
        return [HostKey.parse(line) for line in lines.splitlines() if line.strip()]
    except InvalidInput:
        return []
