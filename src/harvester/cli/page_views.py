"""What commands show of pages, their readings, and quarantine. Needs Django."""

from dataclasses import asdict
from datetime import datetime
from typing import Any, Final
from uuid import UUID

from rich.console import RenderableType
from rich.text import Text

from harvester.catalog.models import Source
from harvester.cli.job_views import database_now
from harvester.cli.output import pairs, stacked, table, when
from harvester.kernel.errors import NotFound
from harvester.scraping import queries
from harvester.scraping.models import QuarantineEntry, ScrapeTarget
from harvester.scraping.target_filters import TargetFilter, diagnose

#: Evidence, refused lines and changes that people are shown; JSON has all that were kept.
MOST_SHOWN: Final = 40
_NOTES: Final = {"unnamed": "nothing says which price"}
_OF_TARGET: Final = (
    "id", "url", "canonical_url", "adapter_id", "schedule", "priority", "status", "enabled", "robots_path_blocked",
    "due_at", "recheck_at", "recheck_reason", "last_scraped_at", "last_success_at", "last_status", "last_detail",
    "consecutive_failures", "last_seen", "waiting", "product_id", "pinned_product_id", "pinned", "chosen", "moved_to",
    "notes", "created_by", "created_at",
)  # fmt: skip
_OF_ENTRY: Final = (
    "id", "reason", "detail", "status", "adapter_id", "version", "run_no", "found", "evidence", "observed_at",
    "created_at", "resolved_at", "resolved_by", "note",
)  # fmt: skip


def targets(wanted: TargetFilter, most: int) -> list[dict[str, Any]]:
    chosen = wanted.targets().select_related("source").order_by("source__name", "url", "pk")[:most]
    return [_target(each) for each in chosen]


def targets_table(found: list[dict[str, Any]], limit: int) -> RenderableType:
    now = database_now()
    rows = [
        (
            str(each["id"]),
            each["source"],
            each["url"],
            each["status"] if each["enabled"] else f"{each['status']}, off",
            each["last_status"] or "never read",
            (each["last_seen"] or {}).get("offer", {}).get("price", ""),
            when(each["last_scraped_at"], now),
            each["next_step"] or "",
        )
        for each in found
    ]
    columns = ("page", "source", "url", "state", "last outcome", "price", "read", "next step")
    return stacked(table(columns, rows), _limited(found, limit)) if rows else Text("There are no such pages.")


def _limited(found: list[dict[str, Any]], limit: int) -> RenderableType | None:
    return Text(f"Shown: {limit:,}. There may be more; --limit shows them.") if len(found) == limit else None


def target(target_id: UUID) -> dict[str, Any]:
    found = ScrapeTarget.objects.select_related("source").filter(pk=target_id).first()
    if found is None:
        raise NotFound(f"There is no page {target_id}; `harvester scrape target list` shows them.")
    return _target(found)


def target_view(found: dict[str, Any]) -> RenderableType:
    return pairs([(name.replace("_", " "), value) for name, value in found.items() if value not in (None, "", {}, [])])


def _target(found: ScrapeTarget) -> dict[str, Any]:
    diagnosis = diagnose(found)
    return {
        **{name: getattr(found, name) for name in _OF_TARGET},
        "source": found.source.name,
        "source_id": found.source_id,
        "trouble": diagnosis.trouble if diagnosis else None,
        "reason": diagnosis.reason if diagnosis else None,
        "next_step": diagnosis.next_step if diagnosis else None,
    }


def evidence_table(evidence: list[dict[str, Any]]) -> RenderableType | None:
    if not evidence:
        return None
    rows = [
        (
            each["field"],
            each["value"],
            "used" if each["is_used"] else _NOTES.get(each["note"], each["note"]),
            each["syntax"],
            each["place"],
        )
        for each in evidence[:MOST_SHOWN]
    ]
    return table(("field", "says", "", "in", "place"), rows)


def entries(source: Source | None, reason: str, most: int) -> list[dict[str, Any]]:
    given = {"source": source, "reason": reason or None}
    wanted = {name: value for name, value in given.items() if value is not None}
    found = QuarantineEntry.objects.filter(status="OPEN", **wanted).select_related("source", "target")
    return [_entry(each) for each in found.order_by("-created_at", "-pk")[:most]]


def entries_table(found: list[dict[str, Any]], limit: int) -> RenderableType:
    now = database_now()
    rows = [
        (
            str(each["id"]),
            each["source"],
            each["url"],
            each["reason"],
            (each["found"] or {}).get("price", ""),
            each["detail"],
            when(each["observed_at"], now),
        )
        for each in found
    ]
    columns = ("entry", "source", "url", "reason", "price", "why", "read")
    return stacked(table(columns, rows), _limited(found, limit)) if rows else Text("Nothing waits in quarantine.")


def entry(entry_id: UUID) -> dict[str, Any]:
    found = QuarantineEntry.objects.select_related("source", "target").filter(pk=entry_id).first()
    if found is None:
        raise NotFound(f"There is no entry {entry_id}; entries are deleted after 90 days.")
    return _entry(found)


def entry_view(found: dict[str, Any]) -> RenderableType:
    offer = found["found"] or {}
    facts = [(name, value) for name, value in found.items() if name not in {"found", "evidence"}]
    now = database_now()
    shown = [
        (name.replace("_", " "), when(value, now) if isinstance(value, datetime) else value)
        for name, value in [*facts, *offer.items()]
        if value not in (None, "")
    ]
    choose = f"harvester scrape quarantine choose {found['id']} price=PLACE"
    next_step = f"Choose the right place, then reprocess: {choose}"
    return stacked(
        pairs(shown), evidence_table(found["evidence"]), Text(next_step) if found["status"] == "OPEN" else None
    )


def _entry(found: QuarantineEntry) -> dict[str, Any]:
    own = {name: getattr(found, name) for name in _OF_ENTRY}
    return {"source": found.source.name, "url": found.target.url, "target_id": found.target_id, **own}


def readings(target_id: UUID) -> list[dict[str, Any]]:
    return [
        {
            "run_no": part.run.no,
            **{name: getattr(part, name) for name in ("outcome", "observed_at", "ended_at", "version")},
            "price": (part.found or {}).get("price"),
            "detail": part.detail.get("error") or part.detail.get("note"),
        }
        for part in queries.readings(target_id)
    ]


def readings_table(found: list[dict[str, Any]]) -> RenderableType:
    now = database_now()
    rows = [
        (each["run_no"], when(each["ended_at"], now), each["outcome"], each["price"], each["detail"]) for each in found
    ]
    columns = ("run", "read", "outcome", "price", "why")
    return table(columns, rows, right=("run", "price")) if rows else Text("The page was not read within 30 days.")


def health(source: Source | None) -> list[dict[str, Any]]:
    """Return what needs somebody for each source that has such pages, or for this one."""
    found = []
    with_pages = Source.objects.filter(targets__isnull=False).order_by("name").distinct()
    for one in with_pages if source is None else [source]:
        about = queries.url_health(one.pk)
        if source is None and not (about.moved or about.gone or about.twice):
            continue
        found.append(
            {
                "source": one.name,
                "source_id": one.pk,
                "moved": [asdict(page) for page in about.moved],
                "gone": [{"target_id": page.pk, "url": page.url} for page in about.gone],
                "same_product": [
                    {"product_id": product, "pages": [{"target_id": pk, "url": url} for pk, url in pages.items()]}
                    for product, pages in about.twice.items()
                ],
            }
        )
    return found


def health_view(found: list[dict[str, Any]]) -> RenderableType:
    moved, gone, twice = [], [], []
    for one in found:
        moved += [
            (page["target_id"], one["source"], page["url"], page["moved_to"], page["problem"]) for page in one["moved"]
        ]
        gone += [(page["target_id"], one["source"], page["url"]) for page in one["gone"]]
        twice += [
            (page["target_id"], one["source"], page["url"], group["product_id"])
            for group in one["same_product"]
            for page in group["pages"]
        ]
    if not (moved or gone or twice):
        return Text("No page has moved, is gone, or is of the same product as another one.")
    return stacked(
        table(("page", "source", "url", "moved to", "problem"), moved, title="Moved") if moved else None,
        Text("Read one at its new address: harvester scrape target move PAGE\n") if moved else None,
        table(("page", "source", "url"), gone, title="Gone") if gone else None,
        Text("Enter its new address, or: harvester scrape target delete PAGE --yes\n") if gone else None,
        table(("page", "source", "url", "product"), twice, title="Same product twice") if twice else None,
        Text("Keep one page of each product, and delete the others.") if twice else None,
    )
