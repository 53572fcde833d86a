"""Counts that only grow, for metrics: they outlive the parts of runs, which are dropped after 30 days."""

import json
from collections.abc import Iterable, Mapping
from typing import Any, Final
from uuid import UUID

OUTCOME: Final = "outcome"
DISABLED: Final = "disabled"
#: What a page took, in milliseconds; in the detail of its part where it is known.
DURATIONS: Final = ("fetch_ms", "extract_ms", "wait_ms")
#: Upper ends of the ranges of durations, in milliseconds.
RANGES: Final = (10, 50, 100, 250, 500, 1_000, 2_500, 5_000, 10_000, 30_000, 120_000)
#: The range without an upper end, and the sum of all.
MORE, SUM = "+Inf", "sum"
REJECTED: Final = "rejected"

# Always in the same order, so that two transactions never wait for each other.
_ADD = """
INSERT INTO scrape_totals AS t (source_id, adapter_id, figure, word, total)
SELECT %(source)s, %(adapter)s, r.figure, r.word, r.number
FROM jsonb_to_recordset(%(rows)s::jsonb) AS r (figure text, word text, number bigint) ORDER BY r.figure, r.word
ON CONFLICT (source_id, adapter_id, figure, word) DO UPDATE SET total = t.total + excluded.total
"""
_ADD_MANY = """
INSERT INTO scrape_totals AS t (source_id, adapter_id, figure, word, total)
SELECT i.source_id, i.adapter_id, %(figure)s, i.word, i.number
FROM unnest(%(sources)s::uuid[], %(adapters)s::text[], %(words)s::text[], %(numbers)s::bigint[])
    AS i(source_id, adapter_id, word, number) ORDER BY 1, 2, 4
ON CONFLICT (source_id, adapter_id, figure, word) DO UPDATE SET total = t.total + excluded.total
"""


def add(cursor: Any, source_id: UUID, adapter_id: str, counts: Mapping[str, Mapping[str, int]]) -> None:
    """Add to the counts of figures and words; the transaction is the caller's, who has locked the source."""
    rows = [
        {"figure": figure, "word": word, "number": number}
        for figure, words in counts.items()
        for word, number in words.items()
    ]
    if rows:
        cursor.execute(_ADD, {"source": source_id, "adapter": adapter_id, "rows": json.dumps(rows)})


def durations(detail: Mapping[str, Any]) -> dict[str, dict[str, int]]:
    """Return the counts of what a page took."""
    found = {}
    for name in DURATIONS:
        took = detail.get(name)
        if isinstance(took, int | float) and took >= 0:
            word = next((str(end) for end in RANGES if took <= end), MORE)
            found[name] = {word: 1, SUM: round(took)}
    return found


def add_many(cursor: Any, figure: str, counts: Iterable[tuple[UUID, str, str, int]]) -> None:
    """Add to counts of many sources, given as source, adapter, word and number."""
    given = list(counts)
    if given:
        sources, adapters, words, numbers = map(list, zip(*given, strict=True))
        values = {"figure": figure, "sources": sources, "adapters": adapters, "words": words, "numbers": numbers}
        cursor.execute(_ADD_MANY, values)
