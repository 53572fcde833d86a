"""Values as text and HTML for people."""

import json
from datetime import datetime
from functools import lru_cache
from html import escape
from typing import Any

from django.utils import timezone
from django.utils.html import format_html
from django.utils.safestring import SafeString

from harvester.engine.models import Job
from harvester.engine.states import ENDED

NOTHING = SafeString('<span class="hv-none" aria-label="none">–</span>')  # noqa: RUF001 - an en dash is meant
MINUTE, HOUR, DAY = 60, 3600, 86_400


#: State of a feed, run, alert or offer -> the state of a job that has the same color.
TONES = {
    "enabled": "succeeded",
    "disabled": "failed",
    "paused": "cancelled",
    "draft": "pending",
    "promoted": "succeeded",
    "approved": "succeeded",
    "held": "retryable",
    "rejected": "cancelled",
    "overtaken": "cancelled",
    "skipped": "pending",
    "failing": "failed",
    "offers_expired": "failed",
    "expires_soon": "retryable",
    "not_visible": "retryable",
    "disappearing": "retryable",
    "late": "retryable",
    "host_key": "retryable",
    "critical": "failed",
    "warning": "retryable",
    "info": "running",
    "resolved": "pending",
    "visible": "succeeded",
    "source_not_shown": "cancelled",
    "expired": "cancelled",
    "hidden_by_correction": "retryable",
    "run_ignored": "retryable",
    "scraped_only": "pending",
    "never_promoted": "pending",
    "in_force": "running",
    "revoked": "cancelled",
    "linked": "succeeded",
    "needs_review": "retryable",
    "priced": "succeeded",
    "seen": "pending",
    "absent": "retryable",
    "unknown": "cancelled",
    "offer": "succeeded",
    "superseded": "pending",
    "no_agreement": "retryable",
    "gone": "cancelled",
    "network": "failed",
    # Shops that need attention.
    "adapter_disabled": "failed",
    "shop_blocked": "failed",
    "run_to_check": "retryable",
    "quarantine": "retryable",
    "stale_pages": "retryable",
    "broken_pages": "failed",
    # How reading a page ended.
    "not_modified": "succeeded",
    "oos_no_price": "pending",
    "price_move": "running",
    "contradiction": "retryable",
    "ambiguous_price": "retryable",
    "same_value": "retryable",
    "bulk_move": "retryable",
    "drift_detected": "failed",
    "wrong_product": "failed",
    "wrong_domain": "failed",
    "zero_price_extracted": "failed",
    "selector_not_found": "failed",
    "price_not_found": "failed",
    "title_not_found": "failed",
    "page_structure_changed": "failed",
    "empty_page": "failed",
    "unknown_availability": "failed",
    "missing_required_field": "failed",
    "invalid_price": "failed",
    "validation_failed": "failed",
    "normalization_failed": "failed",
    "selector_failure": "failed",
    "adapter_failed": "failed",
    "blocked_page": "retryable",
    "rate_limited": "retryable",
    "blocked_by_robots_txt": "retryable",
    "robots_unavailable": "retryable",
    # Runs over pages, entries of quarantine, imports and overrides.
    "quarantined": "retryable",
    "empty": "pending",
    "open": "retryable",
    "written": "succeeded",
    "dismissed": "cancelled",
    "preview": "pending",
    "importing": "running",
    "done": "succeeded",
    "active": "succeeded",
    "retired": "cancelled",
    "broken": "failed",
    "stale": "retryable",
}


@lru_cache
def badge(word: str) -> SafeString:
    """Return a state in words and color."""
    name = word.lower()
    tone, text = escape(TONES.get(name, name)), escape(name.replace("_", " ").capitalize())
    return SafeString(f'<span class="hv-badge hv-{tone}">{text}</span>')


def number(count: int) -> SafeString:
    return SafeString(f'<span class="hv-num">{count:,}</span>')


def worker(name: str | None) -> SafeString:
    """Return the name of a worker, which may be as long as its host's."""
    return format_html('<span class="hv-worker" title="{0}">{0}</span>', name) if name else NOTHING


def when(moment: datetime | None) -> SafeString:
    """Return how long ago or how soon, with the exact time on hover. portal.js keeps it up to date."""
    if moment is None:
        return NOTHING
    exact = moment.isoformat(timespec="milliseconds")
    text = distance((moment - timezone.now()).total_seconds())
    return SafeString(f'<time datetime="{exact}" title="{moment:%Y-%m-%d %H:%M:%S} UTC" data-relative>{text}</time>')


def distance(seconds: float) -> str:
    """Return seconds from now in words; negative ones are past. `relativeTime` in portal.js does the same."""
    size = duration(abs(seconds))
    if abs(seconds) < 1:
        return "just now"
    return f"in {size}" if seconds > 0 else f"{size} ago"


def duration(seconds: float) -> str:
    """Return a duration in the largest unit of which it has two, so that 47 hours are not a day."""
    for unit, name in ((DAY, "d"), (HOUR, "h"), (MINUTE, "min")):
        if seconds >= 2 * unit:
            return f"{int(seconds // unit)} {name}"
    return f"{int(seconds)} s"


def span(seconds: float) -> str:
    """Return a measured duration, more precise if it is short."""
    if seconds < 1:
        return f"{seconds * 1000:.0f} ms"
    if seconds < MINUTE:
        return f"{seconds:.1f} s"
    if seconds < HOUR:
        return f"{int(seconds // MINUTE)} min {int(seconds % MINUTE)} s"
    return f"{int(seconds // HOUR)} h {int(seconds % HOUR // MINUTE)} min"


def verb(name: str) -> str:
    """Return USER_LOGGED_IN as: User logged in."""
    return name.replace("_", " ").capitalize()


def pretty(value: Any) -> str:
    """Return a value as indented JSON."""
    return json.dumps(value, indent=2, ensure_ascii=False, sort_keys=True, default=str)


def progress(job: Job) -> SafeString:
    """Return the progress of an open job: a bar if the total is known, the number or the note otherwise."""
    if job.state in ENDED:
        return NOTHING
    known = job.progress if isinstance(job.progress, dict) else None
    if not known or not isinstance(known.get("done"), int | float):
        return NOTHING
    done, total, note = known["done"], known.get("total"), str(known.get("note") or "")
    if isinstance(total, int | float) and total > 0:
        percent = max(0, min(100, round(100 * done / total)))
        return format_html(
            '<span class="hv-progress" title="{} of {} {}">'
            '<progress max="100" value="{}" aria-label="Progress">{}%</progress><span class="hv-num">{}%</span></span>',
            *(_plain(done), _plain(total), note, percent, percent, percent),
        )
    if not done and note:
        return format_html('<span class="hv-progress">{}</span>', note)
    return format_html('<span class="hv-progress"><span class="hv-num">{}</span> {}</span>', _plain(done), note)


def _plain(number: float) -> str:
    return f"{number:,.0f}" if float(number).is_integer() else f"{number:,.2f}"
