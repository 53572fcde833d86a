"""What commands show of feeds. Needs Django."""

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
from harvester.feeds.states import FeedStatus, Transport
from harvester.guards.host_keys import HostKey
from harvester.kernel.errors import NotFound, TerminalError

RUNS_SHOWN = 5
_PUBLIC = (
    "id", "network", "status", "schedule_hours", "next_run_at", "manual_run_requested_at", "consecutive_failures",
    "last_run_at", "transport", "host", "port", "path", "username", "secret_fields", "secret_version", "compression",
    "encoding", "default_currency", "decimal_style", "unknown_stock", "kept_parameters", "use_manifest",
    "max_file_bytes", "max_rows", "max_products", "thresholds", "accepts_url_identity", "unchanged_means_seen",
    "created_by", "created_at", "updated_at", "retired_at",
)  # fmt: skip
_STYLES = {"ENABLED": "green", "PAUSED": "yellow", "DISABLED": "bold red", "DRAFT": "cyan"}


def source_named(name: str) -> Source:
    source = Source.objects.filter(name=name).first()
    if source is None:
        near = difflib.get_close_matches(name, list(Source.objects.values_list("name", flat=True)[:1000]), n=1)
        hint = f"did you mean {near[0]!r}?" if near else "`harvester source list` shows them all."
        raise NotFound(f"There is no source {name!r}; {hint}")
    return source


def public(feed: Feed) -> dict[str, Any]:
    """A feed without its secrets."""
    shown = {name: getattr(feed, name) for name in _PUBLIC}
    return {"name": str(feed), **shown, "expiry_hours": feed.source.expiry_hours}


def plan_of(feed: Feed) -> str:
    """When it runs, for people."""
    if feed.retired_at is not None:
        return "it is retired"
    if feed.status != FeedStatus.ENABLED:
        return "it does not run"
    if feed.next_run_at is None:
        return "it runs when asked"
    return f"it runs every {feed.schedule_hours} h, next {when(feed.next_run_at, database_now())}"


def next_steps(feed: Feed) -> str:
    """The commands that lead from a new draft to a feed that runs and whose offers are visible."""
    steps = ["credentials", "test", *(["host-key"] if feed.transport == Transport.SFTP else []), "enable"]
    seen = exposure_of(feed.source_id)
    primary = [] if seen.is_shown or seen.primary_source else ["source primary"]
    return f"harvester {', '.join([*(f'feed {step}' for step in steps), *primary])}"


def all_feeds() -> list[dict[str, Any]]:
    feeds = list(Feed.objects.filter(retired_at=None).select_related("source").order_by("source__name"))
    seen = exposures([feed.source_id for feed in feeds])
    return [{**public(feed), "last_run": _last_run(feed), **visibility(seen[feed.source_id])} for feed in feeds]


def visibility(seen: Exposure) -> dict[str, Any]:
    """What consumers see of a feed's offers, until when, and why they see none."""
    return {
        "visible_offers": seen.visible,
        "not_visible_because": seen.not_visible_because,
        "offers_expire_at": seen.offers_expire_at,
        "disappearing_offers": seen.disappearing,
        "disappear_by": seen.disappear_by,
    }


def _last_run(feed: Feed) -> dict[str, Any] | None:
    found = run_views.newest(feed, 1)
    return found[0] if found else None


def list_table(feeds: list[dict[str, Any]]) -> RenderableType:
    if not feeds:
        return Text("There are no feeds yet. Make one: harvester feed add SOURCE network=impact")
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
    columns = ("name", "network", "status", "schedule", "next run", "last run", "its state", "visible")
    hidden = [
        Text(f"{feed['name']}: {feed['not_visible_because']}", style="yellow")
        for feed in feeds
        if feed["not_visible_because"]
    ]
    return stacked(table(columns, rows, right=("visible",)), *hidden)


def details(feed: Feed) -> dict[str, Any]:
    """A feed with everything that people may see."""
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
    lacks = [Text(f"lacks: {lack}", style="yellow") for lack in feed["lacks"]]
    if feed["not_visible_because"]:
        lacks.append(Text(feed["not_visible_because"], style="yellow"))
    return stacked(heading, pairs(_facts(feed)), *lacks, _host_keys_if_any(feed), run_views.list_table(feed["runs"]))


def _host_keys_if_any(feed: dict[str, Any]) -> RenderableType | None:
    """Only SFTP servers have them."""
    return host_key_view(feed, feed["name"]) if feed["transport"] == Transport.SFTP else None


def _facts(feed: dict[str, Any]) -> list[tuple[str, Any]]:
    now = database_now()
    schedule = f"every {feed['schedule_hours']} h" if feed["schedule_hours"] else "manual"
    facts = [
        ("visible offers", count_text(feed["visible_offers"])),
        ("offers disappear", when(feed["offers_expire_at"], now)),
        ("disappearing", _disappearing(feed)),
        ("network", feed["network"]),
        ("schedule", schedule),
        ("next run", when(feed["next_run_at"], now)),
        ("run asked for", when(feed["manual_run_requested_at"], now)),
        ("last run", when(feed["last_run_at"], now) or "never"),
        ("failures in a row", feed["consecutive_failures"] or None),
        ("expiry", f"{feed['expiry_hours']} h"),
        ("server", f"{feed['transport']} {feed['host'] or '(none)'} port {feed['effective_port']}"),
        ("path", feed["path"]),
        ("user name", feed["username"]),
        ("secrets", ", ".join(feed["secret_fields"]) or "none"),
    ]
    others = (
        "compression",
        "encoding",
        "default_currency",
        "decimal_style",
        "unknown_stock",
        "max_file_bytes",
        "max_rows",
        "max_products",
    )
    facts += [(name.replace("_", " "), feed[name]) for name in others]
    facts.append(("kept parameters", ", ".join(feed["kept_parameters"])))
    facts += [(f"threshold {name}", value) for name, value in feed["thresholds"].items()]
    return [(name, value) for name, value in facts if value not in (None, "")]


def _disappearing(feed: dict[str, Any]) -> str | None:
    if not feed["disappearing_offers"]:
        return None
    return f"{count_text(feed['disappearing_offers'])} offers by {run_views.moment(feed['disappear_by'])}"


def host_keys(feed: Feed) -> dict[str, Any]:
    """The keys of its server that were approved, and the one that it showed last."""
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
    """For somebody who asked for them."""
    if feed.transport == Transport.FTP:
        return Text(f"{feed} reads by FTP, whose servers have no host keys.")
    return host_key_view(found, str(feed))


def host_key_view(found: dict[str, Any], name: str) -> RenderableType:
    lines = [Text(f"approved: {key['type']} {key['fingerprint']}", style="green") for key in found["host_keys"]]
    seen = found["seen_host_key"]
    if seen and not found["seen_is_approved"]:
        lines.append(Text(f"seen, not approved: {seen['type']} {seen['fingerprint']}", style="yellow"))
        approval = run_views.command_line("host-key", name, seen["fingerprint"])
        lines.append(Text(f"Compare it with what the partner says; then: {approval}"))
    return stacked(*(lines or [Text("No host key was approved or seen yet; a test run shows it.")]))


def test_result(job_id: int) -> dict[str, Any]:
    """What a test run found."""
    job = find(job_id)
    if not isinstance(job.result, dict):
        raise TerminalError(f"The test run {job_id} {job.state}: {job.error or 'it has no result'}")
    return {"job_id": job_id, **job.result}


def test_view(found: dict[str, Any], name: str) -> RenderableType:
    verdict = Text("The feed can be read.", style="green") if found["success"] else None
    return stacked(
        verdict,
        pairs(_written(found)) if "dialect" in found else None,
        _mapped_rows(found.get("rows") or []),
        run_views.counts_table("rejected rows", found.get("rejects") or {}),
        run_views.counts_table("warnings", found.get("warnings") or {}),
        run_views.notices_table(found.get("notices") or []),
        run_views.samples_table(found.get("samples") or {}),
        _problem(found, name),
    )


def _written(found: dict[str, Any]) -> list[tuple[str, Any]]:
    dialect = found["dialect"]
    quoting = "with quotes" if dialect["quoted"] else "quotes are text"
    first = "the first " if found["has_more_rows"] else ""
    bound = ", ".join(f"{name}: {' / '.join(columns)}" for name, columns in found["binding"].items())
    return [
        ("rows", f"{first}{found['rows_detected']}, {found['rows_valid']} can be used"),
        ("written as", f"{dialect['delimiter_name']}, {quoting}, {dialect['encoding']}, {found['compression']}"),
        ("layout", found["family"] or "unknown, read by its column names"),
        ("columns", bound),
        ("not read", ", ".join(found["unbound"])),
    ]


def _mapped_rows(rows: list[dict[str, Any]]) -> RenderableType | None:
    if not rows:
        return None
    columns = ("item_id", "sku", "title", "amount", "currency", "in_stock", "url")
    return table(columns, [[row[name] for name in columns] for row in rows], right=("amount",))


def _problem(found: dict[str, Any], name: str) -> RenderableType | None:
    error, seen = found.get("error"), found.get("seen_host_key")
    told = Text.assemble((f"{error['code']}: ", "bold red"), cell(error["message"])) if error else None
    hint = (
        Text(f"If the partner confirms it: {run_views.command_line('host-key', name, seen['fingerprint'])}")
        if seen
        else None
    )
    return stacked(told, hint) if told or hint else None
