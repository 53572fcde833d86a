"""Queries and tables of the `feed` commands. Needs Django."""

import difflib
from typing import Any

from rich.console import RenderableType
from rich.text import Text

from harvester.catalog.exposure import Exposure, exposure_of, exposures
from harvester.catalog.models import Source
from harvester.cli import run_views
from harvester.cli.job_views import database_now, find
from harvester.cli.output import cell, count_text, pairs, stacked, table, when
from harvester.feeds.models import Feed, FeedRun
from harvester.feeds.partner_connection import approved_keys, port_of
from harvester.feeds.readiness import missing_for_a_run
from harvester.feeds.settings import STORED
from harvester.feeds.states import FeedStatus, Transport
from harvester.guards.host_keys import HostKey
from harvester.kernel.errors import NotFound, TerminalError

RUNS_SHOWN = 5
_PUBLIC = (
    "id", "status", "next_run_at", "manual_run_requested_at", "consecutive_failures", "last_run_at", *STORED,
    "secret_fields", "secret_version", "created_by", "created_at", "updated_at", "retired_at",
)  # fmt: skip
_STYLES = {"ENABLED": "green", "PAUSED": "yellow", "DISABLED": "bold red", "DRAFT": "cyan"}


def source_named(name: str) -> Source:
    source = Source.objects.filter(name=name).first()
    if source is None:
        near = difflib.get_close_matches(name, list(Source.objects.values_list("name", flat=True)[:1000]), n=1)
        hint = f"did you mean {near[0]!r}?" if near else "`harvester source list` lists them."
        raise NotFound(f"There is no source {name!r}; {hint}")
    return source


def public(feed: Feed) -> dict[str, Any]:
    """Return a feed without its secrets."""
    shown = {name: getattr(feed, name) for name in _PUBLIC}
    return {"name": str(feed), **shown, "expiry_hours": feed.source.expiry_hours}


def plan_of(feed: Feed) -> str:
    """Return when a feed runs, for people."""
    if feed.retired_at is not None:
        return "it is retired"
    if feed.status != FeedStatus.ENABLED:
        return "it does not run"
    if feed.next_run_at is None:
        return "it runs only on request"
    return f"it runs every {feed.schedule_hours} h, next {when(feed.next_run_at, database_now())}"


def next_steps(feed: Feed) -> str:
    """Return the commands that make a new draft a feed that runs and whose offers are visible."""
    steps = ["credentials", "test", *(["host-key"] if feed.transport == Transport.SFTP else []), "enable"]
    exposure = exposure_of(feed.source_id)
    primary = [] if exposure.is_shown or exposure.primary_source else ["source primary"]
    return f"harvester {', '.join([*(f'feed {step}' for step in steps), *primary])}"


def all_feeds() -> list[dict[str, Any]]:
    feeds = list(Feed.objects.filter(retired_at=None).select_related("source").order_by("source__name"))
    seen = exposures([feed.source_id for feed in feeds])
    return [
        {
            **public(feed),
            "last_run": next(iter(run_views.newest(feed, 1)), None),
            **visibility(seen[feed.source_id]),
        }
        for feed in feeds
    ]


def visibility(exposure: Exposure) -> dict[str, Any]:
    """Return how many offers consumers see and until when, or why they see none."""
    return {
        "visible_offers": exposure.visible,
        "not_visible_because": exposure.not_visible_because,
        "offers_expire_at": exposure.offers_expire_at,
        "disappearing_offers": exposure.disappearing,
        "disappear_by": exposure.disappear_by,
    }


def list_table(feeds: list[dict[str, Any]]) -> RenderableType:
    if not feeds:
        return Text("There are no feeds yet. Create one: harvester feed add SOURCE network=impact")
    now = database_now()
    rows = [
        (
            feed["name"],
            feed["network"],
            Text(feed["status"], style=_STYLES[feed["status"]]),
            f"every {feed['schedule_hours']} h" if feed["schedule_hours"] else "manual",
            when(feed["next_run_at"], now),
            when(feed["last_run_at"], now) or "never",
            run_views.state_of(feed["last_run"]) if feed["last_run"] else "",
            count_text(feed["visible_offers"]),
        )
        for feed in feeds
    ]
    columns = ("name", "network", "status", "schedule", "next run", "last run", "outcome", "visible")
    hidden = [
        Text(f"{feed['name']}: {feed['not_visible_because']}", style="yellow")
        for feed in feeds
        if feed["not_visible_because"]
    ]
    return stacked(table(columns, rows, right=("visible",)), *hidden)


def details(feed: Feed) -> dict[str, Any]:
    """Return everything about a feed except its secrets."""
    return {
        **public(feed),
        **host_keys(feed),
        **visibility(exposure_of(feed.source_id)),
        "lacks": list(missing_for_a_run(feed).values()),
        "runs_total": FeedRun.objects.filter(feed=feed).count(),
        "runs": run_views.newest(feed, RUNS_SHOWN),
        "effective_port": port_of(feed),
    }


def detail_view(feed: dict[str, Any]) -> RenderableType:
    heading = Text.assemble((feed["name"], "bold"), "  ", (feed["status"], _STYLES[feed["status"]]))
    warnings = [Text(f"missing: {lack}", style="yellow") for lack in feed["lacks"]]
    if feed["not_visible_because"]:
        warnings.append(Text(feed["not_visible_because"], style="yellow"))
    keys = host_key_view(feed, feed["name"]) if feed["transport"] == Transport.SFTP else None
    return stacked(heading, pairs(_facts(feed)), *warnings, keys, run_views.list_table(feed["runs"]))


def _facts(feed: dict[str, Any]) -> list[tuple[str, Any]]:
    now = database_now()
    schedule = f"every {feed['schedule_hours']} h" if feed["schedule_hours"] else "manual"
    disappearing = None
    if feed["disappearing_offers"]:
        disappearing = f"{count_text(feed['disappearing_offers'])} offers by {run_views.moment(feed['disappear_by'])}"
    facts = [
        ("visible offers", count_text(feed["visible_offers"])),
        ("offers disappear", when(feed["offers_expire_at"], now)),
        ("disappearing", disappearing),
        ("network", feed["network"]),
        ("schedule", schedule),
        ("next run", when(feed["next_run_at"], now)),
        ("run requested", when(feed["manual_run_requested_at"], now)),
        ("last run", when(feed["last_run_at"], now) or "never"),
        ("failures in a row", feed["consecutive_failures"] or None),
        ("expiry", f"{feed['expiry_hours']} h"),
        ("server", f"{feed['transport']} {feed['host'] or '(none)'} port {feed['effective_port']}"),
        ("path", feed["path"]),
        ("user name", feed["username"]),
        ("secrets", ", ".join(feed["secret_fields"]) or "none"),
    ]
    others = (
        "compression", "encoding", "default_currency", "decimal_style", "unknown_stock", "max_file_bytes", "max_rows",
        "max_products",
    )  # fmt: skip
    facts += [(name.replace("_", " "), feed[name]) for name in others]
    facts.append(("kept parameters", ", ".join(feed["kept_parameters"])))
    facts += [(f"threshold {name}", value) for name, value in feed["thresholds"].items()]
    return [(name, value) for name, value in facts if value not in (None, "")]


def host_keys(feed: Feed) -> dict[str, Any]:
    """Return the approved keys of the feed's server, and the key that it sent last."""
    seen = HostKey.parse(feed.seen_host_key) if feed.seen_host_key else None
    approved = approved_keys(feed)
    return {
        "host_keys": [_key(key) for key in approved],
        "seen_host_key": _key(seen) if seen else None,
        "seen_is_approved": seen in approved if seen else None,
    }


def _key(key: HostKey) -> dict[str, str]:
    return {"type": key.type, "fingerprint": key.fingerprint, "line": str(key)}


def host_keys_of(feed: Feed, found: dict[str, Any]) -> RenderableType:
    """Return the answer to `feed host-key`."""
    if feed.transport == Transport.FTP:
        return Text(f"{feed} uses FTP, whose servers have no host keys.")
    return host_key_view(found, str(feed))


def host_key_view(found: dict[str, Any], name: str) -> RenderableType:
    lines = [Text(f"approved: {key['type']} {key['fingerprint']}", style="green") for key in found["host_keys"]]
    seen = found["seen_host_key"]
    if seen and not found["seen_is_approved"]:
        lines.append(Text(f"seen, not approved: {seen['type']} {seen['fingerprint']}", style="yellow"))
        approval = run_views.command_line("host-key", name, seen["fingerprint"])
        lines.append(Text(f"Compare it with the key that the partner published. If it is the same: {approval}"))
    return stacked(*(lines or [Text("No host key is approved or known yet; harvester feed test shows it.")]))


def test_result(job_id: int) -> dict[str, Any]:
    """Return the result of a feed test."""
    job = find(job_id)
    if not isinstance(job.result, dict):
        raise TerminalError(f"The feed test {job_id} {job.state}: {job.error or 'it has no result'}")
    return {"job_id": job_id, **job.result}


def test_view(found: dict[str, Any], name: str) -> RenderableType:
    verdict = Text("The feed can be read.", style="green") if found["success"] else None
    columns = ("item_id", "sku", "title", "amount", "currency", "in_stock", "url")
    rows = [[row[column] for column in columns] for row in found.get("rows") or []]
    error, seen = found.get("error"), found.get("seen_host_key")
    approval = seen and run_views.command_line("host-key", name, seen["fingerprint"])
    facts: list[tuple[str, Any]] = []
    if dialect := found.get("dialect"):
        quoting = "with quotes" if dialect["quoted"] else "quotes are text"
        first = "the first " if found["has_more_rows"] else ""
        facts = [
            ("rows", f"{first}{found['rows_detected']}, {found['rows_valid']} valid"),
            ("format", f"{dialect['delimiter_name']}, {quoting}, {dialect['encoding']}, {found['compression']}"),
            ("layout", found["family"] or "unknown, read by its column names"),
            ("columns", ", ".join(f"{name}: {' / '.join(bound)}" for name, bound in found["binding"].items())),
            ("ignored columns", ", ".join(found["unbound"])),
        ]
    return stacked(
        verdict,
        pairs(facts) if facts else None,
        table(columns, rows, right=("amount",)) if rows else None,
        run_views.counts_table("rejected rows", found.get("rejects") or {}),
        run_views.counts_table("warnings", found.get("warnings") or {}),
        run_views.notices_table(found.get("notices") or []),
        run_views.samples_table(found.get("samples") or {}),
        Text.assemble((f"{error['code']}: ", "bold red"), cell(error["message"])) if error else None,
        Text(f"If the partner confirms this key: {approval}") if approval else None,
    )
