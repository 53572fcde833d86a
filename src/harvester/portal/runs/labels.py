"""What a run says, put so that a template only has to write it down."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from django.template.defaultfilters import filesizeformat
from django.utils.text import capfirst

from harvester.feeds.findings import DUPLICATE
from harvester.feeds.models import FeedRun
from harvester.feeds.run_details import FIGURES
from harvester.kernel.network import Field
from harvester.kernel.rejects import RejectCode
from harvester.kernel.text import without_markup
from harvester.pipeline.held_difference import KINDS
from harvester.portal.display import span, verb
from harvester.runs.kinds import gate_named
from harvester.runs.models import Run

#: Stage -> what happens in it, in their order.
STAGES: Final = {
    "download": "Download",
    "parse": "Read",
    "circuit_breaker": "Compare and judge",
    "upsert": "Copy products",
    "promote": "Promote or hold",
}
_GROUPS: Final = {
    "File": ("download_bytes", "rows_read", "rows_parsed", "products_rejected", "duplicate_key_count", "error_count"),
    "Products": (
        *("products_upserted", "products_new", "products_changed", "products_back", "products_missing"),
        *("would_expire_count", "products_expired", "url_hash_fallback_count", "identity_upgrades"),
    ),
    "Prices": ("prices_due", "prices_written"),
}
#: Kind of change -> its name, and what it would mean for one product and for several.
CHANGES: Final = {
    "missing": ("Missing", "product goes missing", "products go missing"),
    "prices": ("Price changes", "price changes", "prices change"),
    "new": ("New", "product is new", "products are new"),
    "content": ("Changed content", "product changes its content", "products change their content"),
    "back": ("Back", "product comes back", "products come back"),
}
#: Products of a kind that are shown before somebody asks for more.
FIRST_PRODUCTS: Final = 8
_SKIPPED: Final = {
    "UNCHANGED_MTIME": "Same file",
    "UNCHANGED_HASH": "Same content",
    "UNCHANGED_REJECTED": "Rejected before",
    "UNCHANGED_IGNORED": "File of an ignored run",
}
_ACRONYMS: Final = re.compile(r"\b(url|gtin|sku|mpn|html|csv|id|sftp|ftp)\b", re.IGNORECASE)
_DELIMITERS: Final = {"\t": "tabs", ",": "commas", ";": "semicolons", "|": "bars"}


def code(word: str) -> str:
    """INVALID_URL reads: Invalid URL."""
    return _SKIPPED.get(word) or _ACRONYMS.sub(lambda found: found[0].upper(), verb(word))


def took(run: Run) -> str | None:
    return span(run.duration_ms / 1000) if run.duration_ms is not None else None


def steps(run: Run) -> list[dict[str, Any]]:
    """The stages of a run at work: those behind it, the one it is in, those ahead."""
    names = list(STAGES)
    at = names.index(run.stage) if run.stage in STAGES else -1
    tones = ["done" if place < at else "now" if place == at else "ahead" for place in range(len(names))]
    return [{"name": STAGES[name], "tone": tone} for name, tone in zip(names, tones, strict=True)]


def figure_groups(figures: FeedRun) -> list[tuple[str, list[tuple[str, str]]]]:
    """Every figure that is known, by what it is about."""
    groups = [(title, list(_figures(figures, names))) for title, names in _GROUPS.items()]
    return [(title, found) for title, found in groups if found]


def _figures(figures: FeedRun, names: Sequence[str]) -> Iterator[tuple[str, str]]:
    for name in names:
        value = getattr(figures, name)
        # Counts that are zero until a row was read say nothing before that.
        if value is not None and (value or figures.rows_read is not None):
            shown = filesizeformat(value) if name == "download_bytes" else f"{value:,}"
            yield capfirst(FIGURES[name].removeprefix("bytes ")), shown


def gates(verdict: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """What each gate said, those that hold first."""
    found = []
    for item in verdict:
        gate = gate_named(item["gate"])
        title = gate.title if gate else item["gate"].replace("_", " ").capitalize()
        rule = gate.rule_with(item.get("figures") or {}) if gate else ""
        said = {"holds": item["holds"], "reason": item["reason"]}
        found.append({"title": title, "code": item["gate"], "rule": rule, **said})
    return sorted(found, key=lambda gate: not gate["holds"])


def stages(timings: Mapping[str, int]) -> list[dict[str, str]]:
    """How long each stage took, and where in the whole it stands, in per cent."""
    known = [(name, timings[name]) for name in STAGES if name in timings]
    known += [(name, took) for name, took in timings.items() if name not in STAGES]
    total = sum(took for _, took in known) or 1
    told, start = [], 0
    for name, took in known:
        words = {"name": STAGES.get(name, verb(name)), "took": span(took / 1000)}
        told.append({**words, "start": f"{100 * start / total:.2f}%", "width": f"{max(100 * took / total, 0.7):.2f}%"})
        start += took
    return told


def binding(dialect: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Field -> the columns it was read from."""
    bound = dialect.get("columns") or {}
    return [(code(field), ", ".join(bound[field])) for field in Field if field in bound]


def delimiter(dialect: Mapping[str, Any]) -> str | None:
    mark = dialect.get("delimiter")
    return _DELIMITERS.get(mark, repr(mark)) if mark else None


def findings(figures: FeedRun, samples: Mapping[str, list[dict[str, Any]]]) -> list[dict[str, Any]]:
    """What was refused, then what was noticed, each with its count and its first rows."""
    counts = {**figures.rejects, **figures.warnings}
    if figures.duplicate_key_count:
        counts[DUPLICATE] = figures.duplicate_key_count
    refused = set(RejectCode)
    codes = sorted({*counts, *samples}, key=lambda name: (name not in refused, -counts.get(name, 0), name))
    return [
        {
            "code": name,
            "title": code(name),
            "count": counts.get(name),
            "is_reject": name in refused,
            "samples": samples.get(name, []),
        }
        for name in codes
    ]


def difference(told: Mapping[str, Any], wanted: str, *, every: bool) -> dict[str, Any]:
    """What would change, and the products of one kind of change: the wanted one, or the first that there is."""
    counts = told["counts"]
    there = [kind for kind in KINDS if counts[kind]]
    chosen = wanted if wanted in KINDS else (there or KINDS)[0]
    return {
        "tabs": [{"kind": kind, "title": CHANGES[kind][0], "count": counts[kind]} for kind in KINDS],
        "counts": counts,
        "chosen": chosen,
        "title": CHANGES[chosen][0],
        "count": counts[chosen],
        "products": [_product(item) for item in told["samples"][chosen][: None if every else FIRST_PRODUCTS]],
        "kept": len(told["samples"][chosen]),
        "groups": [
            ("By category", "Category", told["categories"]),
            ("By brand", "Brand", told["brands"]),
        ],
    }


def _product(item: Mapping[str, Any]) -> dict[str, Any]:
    return {
        **item,
        "move": f"{item['factor'] - 1:+.0%}".replace("-", "\u2212") if item["factor"] is not None else "other currency",
        "fields": [
            (code(name), before and without_markup(before), after and without_markup(after))
            for name, (before, after) in item["changed"].items()
        ],
    }


def changes_sentence(counts: Mapping[str, int]) -> str:
    """28 products go missing, 4 prices change and 1 product is new."""
    parts = [f"{counts[kind]:,} {CHANGES[kind][1 if counts[kind] == 1 else 2]}" for kind in KINDS if counts[kind]]
    if not parts:
        return "Nothing that consumers see changes"
    return " and ".join(filter(None, (", ".join(parts[:-1]), parts[-1])))
