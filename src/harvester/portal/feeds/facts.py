"""A feed's settings as people read them. Of its secrets only the names are known here."""

from dataclasses import dataclass
from typing import Any, Final

from harvester.feeds.fetch import MAX_FILE_BYTES
from harvester.feeds.models import Feed
from harvester.feeds.partner_connection import port_of
from harvester.feeds.reader import ParseLimits
from harvester.feeds.settings import THRESHOLDS
from harvester.feeds.states import Transport
from harvester.guards.host_keys import HostKey
from harvester.kernel.errors import InvalidInput
from harvester.kernel.stock import UnknownStock

#: What credentials may hold -> what people call it.
SECRETS: Final = {"password": "Password", "private_key": "Private key", "passphrase": "Passphrase of the key"}
MEGABYTE: Final = 1024 * 1024
_DETECTED: Final = "detected from the file"
#: What a stock text means that cannot be read -> what people call it.
UNKNOWN_STOCK_WORDS: Final = {
    UnknownStock.IN_STOCK.value: "in stock",
    UnknownStock.OUT_OF_STOCK.value: "out of stock",
    UnknownStock.REJECT.value: "the row is rejected",
}
#: Threshold -> what people call it, in the order of the gates.
THRESHOLD_WORDS: Final = {
    "expiry_share": "Missing products, share that holds a run",
    "expiry_least": "Missing products, minimum for the share to count",
    "expiry_most": "Missing products that hold a run in any case",
    "url_hash_share": "Products without ID or SKU, share that holds a run",
    "url_hash_most": "Products without ID or SKU that hold a run in any case",
    "shock_move": "Price move that counts as a shock",
    "shock_share": "Shocked prices, share that holds a run",
    "shock_least": "Shocked prices, minimum for the share to count",
    "reject_share": "Rejected rows, share that holds a run",
    "reject_least": "Rejected rows, minimum for the share to count",
}


@dataclass(frozen=True, kw_only=True)
class Fact:
    """A setting.

    Attributes:
        name: what people call it.
        value: as people read it; empty if there is none.
        is_default: nobody has set it.
    """

    name: str
    value: str
    is_default: bool = False


def sections(feed: Feed) -> dict[str, list[Fact]]:
    return {
        "Server": _server(feed),
        "Schedule and freshness": _schedule(feed),
        "File": _file(feed),
        "Limits": _limits(feed),
    }


def _server(feed: Feed) -> list[Fact]:
    return [
        Fact(name="Transport", value=feed.transport),
        Fact(name="Host", value=feed.host),
        Fact(name="Port", value=str(port_of(feed)), is_default=feed.port is None),
        Fact(name="Path", value=feed.path),
        Fact(name="User name", value=feed.username),
    ]


def _schedule(feed: Feed) -> list[Fact]:
    hours = feed.source.expiry_hours
    return [
        Fact(name="Schedule", value=f"every {feed.schedule_hours} h" if feed.schedule_hours else "manual"),
        Fact(name="Offers expire", value=f"{hours} h after they were last seen" if hours else ""),
        Fact(name="Unchanged file", value=_truth(feed.unchanged_means_seen, "counts as seen", "offers still expire")),
    ]


def _file(feed: Feed) -> list[Fact]:
    return [
        Fact(name="Compression", value=feed.compression.capitalize()),
        Fact(name="Encoding", value=feed.encoding or _DETECTED, is_default=not feed.encoding),
        Fact(name="Default currency", value=feed.default_currency),
        Fact(name="Decimal separator", value=_point(feed.decimal_style), is_default=not feed.decimal_style),
        Fact(
            name="Unknown stock text",
            value=UNKNOWN_STOCK_WORDS[feed.unknown_stock],
            is_default=feed.unknown_stock == UnknownStock.IN_STOCK,
        ),
        Fact(name="Kept link parameters", value=", ".join(feed.kept_parameters)),
        Fact(name="Manifest", value=_truth(feed.use_manifest, "used where the network has one", "not used")),
        Fact(
            name="Products without ID", value=_truth(feed.accepts_url_identity, "accepted", "held when there are many")
        ),
    ]


def _limits(feed: Feed) -> list[Fact]:
    most = ParseLimits()
    size = feed.max_file_bytes or MAX_FILE_BYTES
    return [
        Fact(name="File", value=f"{size / MEGABYTE:,.10g} MB", is_default=feed.max_file_bytes is None),
        Fact(name="Rows", value=f"{feed.max_rows or most.rows:,}", is_default=feed.max_rows is None),
        Fact(name="Products", value=f"{feed.max_products or most.products:,}", is_default=feed.max_products is None),
    ]


def thresholds(feed: Feed) -> list[Fact]:
    return [
        Fact(
            name=words,
            value=_amount(name, feed.thresholds.get(name, THRESHOLDS[name])),
            is_default=name not in feed.thresholds,
        )
        for name, words in THRESHOLD_WORDS.items()
    ]


def _amount(name: str, number: float) -> str:
    return f"{100 * number:g} %" if name.endswith(("_share", "_move")) else f"{number:,}"


def _truth(value: bool, yes: str, no: str) -> str:
    return yes if value else no


def _point(style: str) -> str:
    return {".": "a point", ",": "a comma"}.get(style, _DETECTED)


def secrets(feed: Feed) -> list[tuple[str, bool]]:
    """What the credentials may hold, and whether it is there; FTP knows no keys."""
    usable = [name for name in SECRETS if feed.transport == Transport.SFTP or name == "password"]
    return [(SECRETS[name], name in feed.secret_fields) for name in usable]


def host_keys(feed: Feed) -> dict[str, Any] | None:
    """The keys of the server that were approved, and one that waits for it; only SFTP has them."""
    if feed.transport != Transport.SFTP:
        return None
    approved = _read(feed.host_keys)
    seen = _read(feed.seen_host_key)
    waiting = next((key for key in seen if key not in approved), None)
    return {"approved": approved, "waiting": waiting}


def _read(lines: str) -> list[HostKey]:
    try:
        return [HostKey.parse(line) for line in lines.splitlines() if line.strip()]
    except InvalidInput:
        return []
