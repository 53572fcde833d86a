"""What the `source` commands read, and how it looks. Needs Django."""

from typing import Any

from rich.console import RenderableType
from rich.text import Text

from harvester.catalog import sources
from harvester.catalog.display_primary import Preview, Side
from harvester.catalog.models import Retailer, Source
from harvester.cli.job_views import database_now
from harvester.cli.output import count_text, pairs, stacked, table, when

_FACTS = (
    "id", "name", "kind", "url", "is_display_primary", "affiliate_network", "affiliate_account_id",
    "affiliate_account_name", "tracking_template", "upc_trusted", "visibility", "expiry_hours", "max_hold_hours",
    "price_heartbeat_hours", "held_run_no", "held_since", "last_promoted_run_no", "last_promoted_at",
    "last_promoted_count", "created_at",
)  # fmt: skip


def public(source: Source) -> dict[str, Any]:
    facts = {name: getattr(source, name) for name in _FACTS}
    shown = sources.with_shown().get(pk=source.pk).is_shown
    return {**facts, "retailer": source.retailer.name, "is_shown": shown}


def listed(retailer: Retailer | None) -> list[dict[str, Any]]:
    found = sources.with_shown().order_by("retailer__name", "name")
    if retailer is not None:
        found = found.filter(retailer=retailer)
    facts = ("id", "name", "kind", "is_display_primary", "last_promoted_at", "last_promoted_count", "held_run_no")
    return [
        {
            **{name: getattr(source, name) for name in facts},
            "retailer": source.retailer.name,
            "is_shown": source.is_shown,
        }
        for source in found
    ]


def list_table(found: list[dict[str, Any]]) -> RenderableType:
    if not found:
        return Text("There are no sources yet. Add one: harvester source add NAME --retailer RETAILER")
    now = database_now()
    rows = [
        (
            source["name"],
            source["retailer"],
            source["kind"],
            _exposure(source),
            when(source["last_promoted_at"], now) or "never",
            count_text(source["last_promoted_count"]),
            f"run {source['held_run_no']}" if source["held_run_no"] else "",
        )
        for source in found
    ]
    columns = ("name", "retailer", "kind", "consumers", "promoted", "products", "held")
    return table(columns, rows, right=("products",))


def detail_view(found: dict[str, Any]) -> RenderableType:
    told = {name: value for name, value in found.items() if name not in {"is_display_primary", "is_shown"}}
    return pairs([*((name.replace("_", " "), value) for name, value in told.items()), ("consumers", _exposure(found))])


def preview_data(told: Preview) -> dict[str, Any]:
    return {
        "vanishing": [_side(side) for side in told.vanishing],
        "appearing": [_side(side) for side in told.appearing],
    }


def preview_view(told: Preview) -> RenderableType:
    sides = [("vanish", side) for side in told.vanishing] + [("appear", side) for side in told.appearing]
    words = Text("Nothing was changed." if sides else "Consumers would see the same as now. Nothing was changed.")
    rows = [(what, side.source.name, _count(side), "; ".join(side.samples)) for what, side in sides]
    columns = ("would", "source", "offers", "such as")
    return stacked(table(columns, rows, right=("offers",)) if rows else None, words)


def _side(side: Side) -> dict[str, Any]:
    return {"source": side.source.name, "offers": side.offers, "is_more": side.is_more, "samples": side.samples}


def _count(side: Side) -> str:
    return f"{'more than ' if side.is_more else ''}{side.offers:,}"


def _exposure(source: dict[str, Any]) -> str:
    if source["is_display_primary"]:
        return "see it (primary)"
    return "see it" if source["is_shown"] else "do not see it"
