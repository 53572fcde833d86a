"""Everything that a feed has left in the database, in words that do not depend on ids and on the clock.

Two feeds that read the same files have the same picture, whatever happened to one of them meanwhile. Products are
named by their identity, runs by their place among the runs of their feed, and moments by the run whose they are.
"""

import json
import re
from collections import Counter
from typing import Any

from tests.support.feed_world import World
from tests.support.tables import rows

#: Table -> how its rows belong to a feed.
TABLES = {
    "source_products": "t.source_id = '{source}'",
    "offers": "t.source_id = '{source}'",
    "prices": "t.source_id = '{source}'",
    "held_changes": "t.source_id = '{source}'",
    "replaced_contents": "t.source_id = '{source}'",
    "replaced_presence": "t.source_id = '{source}'",
    "replaced_promotions": "t.source_id = '{source}'",
    "ignored_prices": "t.source_id = '{source}'",
    "run_absences": "t.source_id = '{source}'",
    "sources": "t.id = '{source}'",
    "feeds": "t.id = '{feed}'",
    "runs": "t.source_id = '{source}'",
    "feed_runs": "t.feed_id = '{feed}'",
    "feed_run_samples": "t.run_id IN (SELECT run_id FROM feed_runs WHERE feed_id = '{feed}')",
    "alerts": "t.key LIKE '%%' || '{feed}'",
    "audit_events": "t.detail->>'feed' = '{feed}'",
    "product_links": "t.source_id = '{source}'",
    "jobs": "t.args->>'feed_id' = '{feed}' OR t.args->>'source_id' = '{source}' OR t.args->>'run_id' IN "
    "(SELECT run_id::text FROM feed_runs WHERE feed_id = '{feed}')",
}
#: What differs between two feeds, or between two ways to the same end, although nothing is wrong.
LEGITIMATE = {
    "source_products": {"source_id"},
    "offers": {"source_id"},
    "prices": {"source_id"},
    "held_changes": {"source_id", "line"},
    "replaced_contents": {"source_id"},
    "replaced_presence": {"source_id"},
    "replaced_promotions": {"source_id"},
    "ignored_prices": {"source_id"},
    "run_absences": {"source_id"},
    "sources": {"id", "retailer_id", "name", "frozen", "last_failure_at"},
    "feeds": {"id", "source_id", "lock_no"},
    "runs": {"id", "source_id", "subject_id", "timings", "job_id", "lease", "attempt", "duration_ms"},
    "feed_runs": {"run_id", "feed_id"},
    "feed_run_samples": {"run_id"},
    "alerts": {"id", "key"},
    "audit_events": {"id", "job_id"},
    "product_links": {"source_id", "product_id"},
    "jobs": {"id", "attempt", "worker", "lease", "progress", "priority"},
}
RUNS = {
    *("run_no", "no", "created_run_no", "updated_run_no"),
    *("last_promoted_run_no", "last_ingested_run_no", "held_run_no"),
}
_UUID = "[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"


def picture(world: World) -> dict[str, list[str]]:
    """Table -> rows."""
    names = _Names(world)
    return {table: sorted(names.row(table, row) for row in _found(world, table)) for table in TABLES}


def differences(one: World, other: World) -> list[str]:
    """Rows that only one of two feeds has; empty if they are alike."""
    pictures = picture(one), picture(other)
    return [
        f"{sign} {table} {line}"
        for table in TABLES
        for sign, mine, theirs in (("-", *pictures), ("+", *reversed(pictures)))
        for line in _without(mine[table], theirs[table])
    ]


def _without(lines: list[str], others: list[str]) -> list[str]:
    return list((Counter(lines) - Counter(others)).elements())


def _found(world: World, table: str) -> list[dict[str, Any]]:
    theirs = TABLES[table].format(source=world.source.id, feed=world.feed.id)
    return [json.loads(row[0]) for row in rows(f"SELECT to_jsonb(t)::text FROM {table} t WHERE {theirs}")]


class _Names:
    """What ids and moments of a feed are called."""

    def __init__(self, world: World) -> None:
        ours = world.source.id
        runs = rows(
            "SELECT no, id::text, to_jsonb(observed_at)#>>'{}' FROM runs WHERE source_id = %s ORDER BY no", ours
        )
        self._runs = {no: f"run {place}" for place, (no, *_) in enumerate(runs)}
        self._moments = {moment: f"the moment of {self._runs[no]}" for no, _, moment in runs if moment}
        self._texts = {run_id: self._runs[no] for no, run_id, _ in runs} | {
            str(world.source.id): "the source",
            str(world.feed.id): "the feed",
            world.source.name: "the name",
            **{f"run {no} ": f"{name} " for no, name in self._runs.items()},
            **{f"Run {no} ": f"{name} " for no, name in self._runs.items()},
        }
        self._nameable = re.compile(f"{_UUID}|[Rr]un [0-9]+ |{re.escape(world.source.name)}")
        known = rows("SELECT id, identity_type, identity_value FROM source_products WHERE source_id = %s", ours)
        self._products = {number: f"product {kind} {value}" for number, kind, value in known}

    def row(self, table: str, row: dict[str, Any]) -> str:
        return json.dumps(self._named(table, row), sort_keys=True)

    def _named(self, table: str, values: dict[str, Any]) -> dict[str, Any]:
        """Without what may differ, inside of documents as well."""
        kept = {column: value for column, value in values.items() if column not in LEGITIMATE[table]}
        return {column: self._value(table, column, value) for column, value in kept.items()}

    def _value(self, table: str, column: str, value: Any) -> Any:
        if value is None:
            return None
        if isinstance(value, dict):
            return self._named(table, value)
        if column in RUNS:
            return self._runs.get(value, f"unknown run {value}")
        if column in {"product_id", "product_ids", "source_product_id"} or (table, column) == ("source_products", "id"):
            return self._product(value)
        if column.endswith(("_at", "_since", "_until")) or column == "at":
            return self._moments.get(value, "some time")
        return self._text(value)

    def _product(self, number: int | list[int]) -> Any:
        if isinstance(number, list):
            return sorted(self._product(one) for one in number)
        return self._products.get(number, "a product that is not kept")

    def _text(self, value: Any) -> Any:
        if isinstance(value, str):
            return self._renamed(value)
        return json.loads(self._renamed(json.dumps(value))) if isinstance(value, list) else value

    def _renamed(self, text: str) -> str:
        return self._nameable.sub(lambda found: self._texts.get(found[0], found[0]), text)
