"""What a run says, put so that a template only has to write it down."""

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from harvester.portal.display import span, verb
from harvester.runs.kinds import gate_named
from harvester.runs.models import Run

_SKIPPED: Final = {
    "UNCHANGED_MTIME": "Same file",
    "UNCHANGED_HASH": "Same content",
    "UNCHANGED_REJECTED": "Rejected before",
    "UNCHANGED_IGNORED": "File of an ignored run",
}
_ACRONYMS: Final = re.compile(r"\b(url|gtin|sku|mpn|html|csv|id|sftp|ftp)\b", re.IGNORECASE)


def code(word: str) -> str:
    """INVALID_URL reads: Invalid URL."""
    return _SKIPPED.get(word) or _ACRONYMS.sub(lambda found: found[0].upper(), verb(word))


def took(run: Run) -> str | None:
    return span(run.duration_ms / 1000) if run.duration_ms is not None else None


def steps(run: Run, stages: Mapping[str, str]) -> list[dict[str, Any]]:
    """Return the stages of a run in progress: those that are done, the current one, those ahead."""
    names = list(stages)
    at = names.index(run.stage) if run.stage and run.stage in stages else -1
    tones = ["done" if place < at else "now" if place == at else "ahead" for place in range(len(names))]
    return [{"name": stages[name], "tone": tone} for name, tone in zip(names, tones, strict=True)]


def gates(verdict: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return the finding of each gate, those that hold first."""
    found = []
    for item in verdict:
        gate = gate_named(item["gate"])
        title = gate.title if gate else item["gate"].replace("_", " ").capitalize()
        rule = gate.rule_with(item.get("figures") or {}) if gate else ""
        said = {"holds": item["holds"], "reason": item["reason"]}
        found.append({"title": title, "code": item["gate"], "rule": rule, **said})
    return sorted(found, key=lambda gate: not gate["holds"])


def waterfall(timings: Mapping[str, int], stages: Mapping[str, str]) -> list[dict[str, str]]:
    """Return the duration of each stage, with its start and width in per cent of the whole."""
    known = [(name, timings[name]) for name in stages if name in timings]
    known += [(name, took) for name, took in timings.items() if name not in stages]
    total = sum(took for _, took in known) or 1
    bars, start = [], 0
    for name, took in known:
        words = {"name": stages.get(name, verb(name)), "took": span(took / 1000)}
        bars.append({**words, "start": f"{100 * start / total:.2f}%", "width": f"{max(100 * took / total, 0.7):.2f}%"})
        start += took
    return bars
