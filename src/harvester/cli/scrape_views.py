"""What commands show of scraping. Needs Django."""

import shlex
from dataclasses import asdict
from typing import Any, Final
from uuid import UUID

from django.db.models import Count, Q
from rich.console import RenderableType
from rich.text import Text

from harvester.catalog import governance
from harvester.catalog.models import Source
from harvester.cli.job_views import database_now
from harvester.cli.output import count_text, pairs, stacked, table, when
from harvester.cli.page_views import MOST_SHOWN, evidence_table
from harvester.kernel.errors import NotFound
from harvester.scraping import capacity, queries
from harvester.scraping import imports as lists
from harvester.scraping.adapters import state_of
from harvester.scraping.capacity import EnqueueResult
from harvester.scraping.lanes import Lanes
from harvester.scraping.models import (
    AdapterState,
    FetchRequest,
    QuarantineEntry,
    ScrapeImport,
    ScrapeOverride,
    ScrapeTarget,
)
from harvester.scraping.readiness import readiness
from harvester.scraping.settings import effective
from harvester.scraping.sites import sites
from harvester.scraping.states import RUN_KIND, TargetStatus

_OF_SOURCE: Final = (
    "id", "name", "enabled", "scrape_enabled", "adapter_id", "robots_compliant", "robots_set_by", "visibility",
    "tos_reviewed_at", "tos_approved_by", "tos_note", "expiry_hours",
)  # fmt: skip
_OF_STATE: Final = (
    "adapter_id", "enabled", "disabled_reason", "disabled_by", "disabled_at", "check_next_run", "check_run_no",
    "baseline_failure_rate", "baseline_yield_rate", "baseline_sample_size", "failed_batches",
    "last_batch_failure_rate", "backoff_until",
)  # fmt: skip


#: Step -> its command, in their order. The contact is a setting.
_COMMANDS: Final = {
    "terms": 'review {source} --note "what the terms say"',
    "robots": "check-robots {source}",
    "adapter": "adapter choose {source} structured",
    "contact": "",
    "enable": "enable {source}",
    "first_run": "run {source} --wait",
    "visible": "show-prices {source}",
}


def shops() -> list[dict[str, Any]]:
    """Sources whose pages are read, or that have pages."""
    counted = {
        status.lower(): Count("targets", filter=Q(targets__status=status, targets__enabled=True))
        for status in TargetStatus
    }
    found = Source.objects.filter(Q(adapter_id__isnull=False) | Q(scrape_enabled=True)).annotate(**counted)
    open_entries = dict(
        QuarantineEntry.objects.filter(status="OPEN").values_list("source_id").annotate(number=Count("pk"))
    )
    states = {state.source_id: state for state in AdapterState.objects.filter(enabled=False)}
    return [
        {
            **{name: getattr(source, name) for name in ("id", "name", "scrape_enabled", "adapter_id", "visibility")},
            "robots_compliant": source.robots_compliant,
            "pages": {name: getattr(source, name) for name in counted},
            "quarantine": open_entries.get(source.pk, 0),
            "adapter_disabled": states[source.pk].disabled_reason if source.pk in states else None,
        }
        for source in found.order_by("name")
    ]


def shops_table(found: list[dict[str, Any]]) -> RenderableType:
    if not found:
        return Text("No pages are read yet. Import some: harvester scrape import file pages.csv")
    rows = [
        (
            shop["name"],
            _state_of_shop(shop),
            shop["adapter_id"],
            *(count_text(shop["pages"][name]) for name in ("active", "broken", "stale")),
            count_text(shop["quarantine"]),
            "yes" if shop["visibility"] == "ELIGIBLE" else "no",
        )
        for shop in found
    ]
    columns = ("source", "state", "adapter", "active", "broken", "stale", "quarantine", "prices count")
    return table(columns, rows, right=("active", "broken", "stale", "quarantine"))


def _state_of_shop(shop: dict[str, Any]) -> str:
    if not shop["scrape_enabled"]:
        return "off"
    if not shop["robots_compliant"]:
        return "forbidden by robots.txt"
    return f"adapter off ({shop['adapter_disabled']})" if shop["adapter_disabled"] else "on"


def shop(source: Source) -> dict[str, Any]:
    """Everything that a person decides about a source by."""
    targets = ScrapeTarget.objects.filter(source=source)
    counted = dict(targets.values_list("status").annotate(number=Count("pk")))
    state = state_of(source.pk, source.adapter_id or "")
    health = next((each for each in governance.states([source.pk]) if each.kind == RUN_KIND), None)
    breaker = (
        "failures",
        "paused_until",
        "stopped_at",
        "stopped_by",
        "stopped_reason",
        "last_success_at",
        "last_failure_at",
    )
    return {
        **{name: getattr(source, name) for name in _OF_SOURCE},
        "retailer": source.retailer.name,
        "readiness": [asdict(step) for step in readiness(source)],
        "pages": {status: counted.get(status, 0) for status in TargetStatus},
        "quarantine": QuarantineEntry.objects.filter(source=source, status="OPEN").count(),
        "seconds_between_requests": Lanes.load().interval_of(source),
        "adapter": {name: getattr(state, name) for name in _OF_STATE},
        "requests": {"gate": health.gate, **{name: getattr(health.breaker, name) for name in breaker}}
        if health
        else None,
        "schedules": [
            {"schedule": each.schedule, "needs": str(each.fit), "is_met": each.fit.is_met}
            for each in queries.schedule_fits(source)
        ],
        "shop_asked_pause_seconds": capacity.shop_pause(source),
        "settings": effective(source.scrape_config),
    }


def shop_view(found: dict[str, Any]) -> RenderableType:
    now = database_now()
    steps = [
        (
            "done" if step["is_done"] else "missing" if step["is_needed"] else "open",
            step["label"],
            step["detail"] or (step["next_step"] if not step["is_done"] else ""),
        )
        for step in found["readiness"]
    ]
    health, adapter = found["requests"], found["adapter"]
    facts = [
        ("source", found["name"]),
        ("retailer", found["retailer"]),
        ("pages are read", "yes" if found["scrape_enabled"] else "no"),
        ("prices count", "yes" if found["visibility"] == "ELIGIBLE" else "no; they are recorded and hidden"),
        (
            "adapter",
            adapter["adapter_id"]
            if adapter["enabled"]
            else f"{adapter['adapter_id']}, off ({adapter['disabled_reason']})",
        ),
        ("pace", f"a request every {found['seconds_between_requests']:g} s"),
        (
            "requests",
            {"CLOSED": "allowed", "OPEN": "paused after failures", "PROBING": "one at a time", "STOPPED": "stopped"}[
                health["gate"] if health else "CLOSED"
            ],
        ),
        ("the shop asked for", capacity.pause_text(pause) if (pause := found["shop_asked_pause_seconds"]) else ""),
        ("paused until", when(health["paused_until"], now) if health else ""),
        ("stopped because", health["stopped_reason"] if health else ""),
        ("pages", ", ".join(f"{number:,} {status.lower()}" for status, number in found["pages"].items() if number)),
        ("in quarantine", count_text(found["quarantine"])),
        *((f"schedule {each['schedule']}", each["needs"]) for each in found["schedules"]),
        *((name, value) for name, value in found["settings"].items()),
    ]
    return stacked(
        pairs([(name, value) for name, value in facts if value not in ("", None, [], {})]),
        table(("step", "", ""), steps),
        Text(f"Next: harvester scrape {command}") if (command := _next_command(found)) else None,
    )


def _next_command(found: dict[str, Any]) -> str:
    """Return the command of the first step that is not done; empty if a command cannot do it."""
    is_done = {step["name"]: step["is_done"] for step in found["readiness"]} | {"enable": found["scrape_enabled"]}
    name = next((name for name in _COMMANDS if not is_done[name]), "")
    return _COMMANDS.get(name, "").format(source=shlex.quote(found["name"]))


def enqueued(result: EnqueueResult) -> dict[str, Any]:
    names = ("accepted", "waiting", "skipped", "rejected", "reason", "retry_after", "message")
    if result.run is not None:
        result.run.refresh_from_db()
    run = {"run_no": result.run.no, "run_outcome": result.run.outcome} if result.run else {"run_no": None}
    return {**{name: getattr(result, name) for name in names}, **run}


def enqueued_text(found: dict[str, Any]) -> str:
    parts = [f"{found['accepted']:,} pages were enqueued"]
    parts += [f"{found[name]:,} {text}" for name, text in (
        ("waiting", "waited already"), ("skipped", "are switched off or not active"), ("rejected", "were rejected"),
    ) if found[name]]  # fmt: skip
    said = f"{', '.join(parts)}. {found['message']}".strip()
    if found["run_no"] is None:
        return said
    ended = f"It ended as {found['run_outcome']}. " if found.get("run_outcome") else ""
    return f"{said} {ended}See: harvester runs show {found['run_no']}"


def tried(asked: FetchRequest) -> dict[str, Any]:
    result = asked.result or {}
    return {"id": asked.pk, "asked_url": asked.url, **result, "outcome": asked.outcome or "FAILED"}


def tried_view(found: dict[str, Any]) -> RenderableType:
    offer = found.get("offer") or {}
    facts = [("outcome", found["outcome"]), ("why", found.get("error")), ("robots.txt", found.get("robots")),
             ("adapter", f"{found.get('adapter_id')} {found.get('version')}" if found.get("adapter_id") else None),
             *offer.items()]  # fmt: skip
    return stacked(
        pairs([(name.replace("_", " "), value) for name, value in facts if value not in (None, "")]),
        evidence_table(found.get("evidence") or []),
        Text("Nothing was written."),
    )


def draft_view(found: dict[str, Any]) -> RenderableType:
    files = [("wrote", file) for file in found["files"]]
    places = [(name, ", ".join(each)) for name, each in found["places"].items()]
    said = f"The new site reads this page as {found['outcome']}. {found['detail']}".strip()
    next_step = (
        "Look at the places, and add a page that is sold out as a fixture. After each change of the site file, write "
        "its version and hash into versions.tsv. Then run the conformance tests."
    )
    return stacked(pairs(files), table(("field", "places"), places), Text(f"{said} {next_step}"))


def adapters() -> dict[str, Any]:
    states = AdapterState.objects.select_related("source").order_by("adapter_id", "source__name")
    return {
        "adapters": [
            {"id": site.id, "version": site.version, "title": site.title, "domains": list(site.domains)}
            for site in sites()
        ],
        "sources": [
            {"source": state.source.name, **{name: getattr(state, name) for name in _OF_STATE}} for state in states
        ],
    }


def adapters_view(found: dict[str, Any]) -> RenderableType:
    known = [
        (each["id"], each["version"], each["title"], ", ".join(each["domains"]) or "any shop")
        for each in found["adapters"]
    ]
    used = [
        (
            each["adapter_id"],
            each["source"],
            "on" if each["enabled"] else f"off ({each['disabled_reason']}, by {each['disabled_by']})",
            f"{each['last_batch_failure_rate']:.0%}" if each["last_batch_failure_rate"] is not None else "",
            f"run {each['check_run_no'] or 'that comes next'}" if each["check_next_run"] else "",
        )
        for each in found["sources"]
    ]
    return stacked(
        table(("adapter", "version", "reads", "shops"), known),
        table(("adapter", "source", "state", "failures", "to be checked"), used, right=("failures",)) if used else None,
    )


def overrides(source: Source) -> list[dict[str, Any]]:
    names = ("version", "status", "places", "backtest", "note", "created_by", "created_at", "activated_by")
    return list(ScrapeOverride.objects.filter(source=source).order_by("-version").values(*names))


def overrides_table(found: list[dict[str, Any]]) -> RenderableType:
    rows = [
        (
            str(each["version"]),
            each["status"],
            "tested" if each["backtest"] else "not tested",
            each["created_by"],
            each["note"],
        )
        for each in found
    ]
    return table(("version", "state", "", "by", "note"), rows) if rows else Text("It is read by its site file alone.")


def backtest_of(source: Source, version: int) -> dict[str, Any]:
    found = ScrapeOverride.objects.filter(source=source, version=version).first()
    if found is None or found.backtest is None:
        raise NotFound(f"Version {version} of {source} has no result; see the job.")
    return dict(found.backtest)


def backtest_view(report: dict[str, Any]) -> RenderableType:
    facts = [("kept pages", report["pages"]), ("read as then", report["same"]), ("another offer", report["changed"]),
             ("no offer any more", report["lost"]), ("an offer now", report["gained"]),
             ("another reason", report["other"]), ("not kept any more", report["missing"]),
             ("fields", ", ".join(f"{name}: {number:,}" for name, number in report["fields"].items()))]  # fmt: skip
    rows = [
        (
            change["kind"],
            change["url"],
            "; ".join(f"{name}: {then} -> {now}" for name, (then, now) in change["fields"].items()) or change["detail"],
        )
        for change in report["changes"][:MOST_SHOWN]
    ]
    return stacked(
        pairs(facts), table(("", "page", "then and now"), rows) if rows else None, Text("Nothing was written.")
    )


def hints_table(found: list[dict[str, Any]]) -> RenderableType:
    rows = [(each["field"], each["place"], f"{each['found']:,} of {each['pages']:,}") for each in found]
    if not rows:
        return Text("The last known values are on none of the kept pages.")
    return table(("field", "place", "pages"), rows, right=("pages",))


def imports() -> list[dict[str, Any]]:
    found = ScrapeImport.objects.order_by("-created_at", "-pk")[:100]
    return [
        {name: getattr(each, name) for name in ("id", "name", "status", "created_by", "created_at")} for each in found
    ]


def imports_table(found: list[dict[str, Any]]) -> RenderableType:
    now = database_now()
    rows = [
        (str(each["id"]), each["name"], each["status"], each["created_by"], when(each["created_at"], now))
        for each in found
    ]
    return table(("import", "list", "state", "by", "begun"), rows) if rows else Text("There are no imports yet.")


def imported(import_id: UUID) -> dict[str, Any]:
    found = ScrapeImport.objects.filter(pk=import_id).first()
    if found is None:
        raise NotFound(f"There is no import {import_id}; `harvester scrape import list` shows them.")
    preview = lists.preview(found)
    groups = [
        {
            "shop": group.domain,
            "source": group.sources.get(group.choice.source_id) if group.choice.source_id else None,
            "retailer": group.retailer,
            "adapter_id": group.choice.adapter_id,
            "schedule": group.choice.schedule,
            "skip": group.choice.skip,
            "counts": {state.value: number for state, number in group.counts.items()},
            "not_added": [
                {
                    "line": row.page.line,
                    "url": row.page.url,
                    "state": row.state.value,
                    "reason": row.reason,
                    "candidates": row.candidates,
                }
                for row in group.rows
                if row.state is not lists.RowState.NEW
            ],
        }
        for group in preview.groups
    ]
    return {
        "id": found.pk, "name": found.name, "status": found.status, "groups": groups,
        "refused": list(preview.refused), "not_read": list(preview.not_read), "results": found.results,
    }  # fmt: skip


def import_view(found: dict[str, Any]) -> RenderableType:
    # After an import, the pages that it added are there, so they count as known.
    known = {} if found["status"] == "PREVIEW" else {"DUPLICATE_OF_TARGET": "in the source now"}
    rows = [
        (
            group["shop"],
            "skipped" if group["skip"] else group["source"] or "a new source",
            group["adapter_id"],
            group["schedule"] or "on request",
            ", ".join(
                f"{number:,} {known.get(state, state.lower().replace('_', ' '))}"
                for state, number in group["counts"].items()
            ),
        )
        for group in found["groups"]
    ]
    refused = [(str(line["line"]), line["text"], line["reason"]) for line in found["refused"][:MOST_SHOWN]]
    rows_left = [row for group in found["groups"] for row in group["not_added"]]
    if found["status"] != "PREVIEW":
        rows_left = [{**line, "url": line["text"]} for line in found["results"].get("lines", [])]
    left_out = [
        (str(row["line"]), row["url"], row["reason"] or row["state"].lower().replace("_", " ")) for row in rows_left
    ]
    unlinked = sum(row["state"] == "UNLINKED" for row in rows_left)
    to_link = f"{unlinked:,} lines need a product: harvester scrape import link {found['id']} LINE=PRODUCT"
    counts = (("added", "added"), ("skipped", "skipped"), ("refused", "not added"))
    result = ", ".join(f"{label}: {found['results'].get(name, 0):,}" for name, label in counts)
    hidden = max(len(left_out) - MOST_SHOWN, 0) + max(len(found["refused"]) - MOST_SHOWN, 0)
    following = "Nothing of a new source is read before it is enabled; harvester scrape show SOURCE lists the steps."
    next_step = f"Nothing was added yet. Next: harvester scrape import start {found['id']} --wait"
    return stacked(
        table(("shop", "to", "adapter", "schedule", "lines"), rows) if rows else None,
        table(("line", "page", "not added because"), left_out[:MOST_SHOWN]) if left_out else None,
        table(("line", "text", "refused because"), refused) if refused else None,
        Text(f"{hidden:,} more lines were left out; --json lists all.") if hidden else None,
        Text(to_link) if unlinked and found["status"] in ("PREVIEW", "DONE") else None,
        Text(next_step if found["status"] == "PREVIEW" else f"{found['status']}. {result}"),
        Text(following) if found["status"] == "DONE" else None,
    )
