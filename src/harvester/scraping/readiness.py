"""What a source needs before its pages are read, and before consumers see what they say."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import islice, pairwise
from typing import Any, Final

from cronsim import CronSim
from django.conf import settings
from django.db import connection

from harvester.catalog.models import Source
from harvester.catalog.named_rows import fetch
from harvester.catalog.states import Visibility
from harvester.runs.models import Run
from harvester.runs.states import RunStatus
from harvester.scraping import robots_cache
from harvester.scraping.addresses import domains_of
from harvester.scraping.models import KeptPage, ScrapeTarget
from harvester.scraping.sites import site_named
from harvester.scraping.states import RUN_KIND, PageOutcome

#: Pages that a person has seen read before all of them are.
SAMPLES: Final = 5
MOST_EXAMPLES: Final = 5
MOST_ORIGINS: Final = 20
#: Moments of a schedule that are compared: more than a month of every working hour.
_MOMENTS: Final = 300

_ORIGINS = """
SELECT DISTINCT substring(url FROM '^[a-zA-Z]+://[^/?#]+') FROM scrape_targets
WHERE source_id = %s AND enabled LIMIT %s
"""
_OUTCOMES = """
SELECT p.outcome, count(*) FROM run_parts p
WHERE p.run_id = %s AND p.begun_at = %s AND p.outcome IS NOT NULL GROUP BY p.outcome ORDER BY 2 DESC, 1
"""
# What the newest page and the newest feed say about the price of the same product.
_COMPARED = """
WITH compared AS (
    SELECT t.url, t.last_seen #>> '{offer,price}' AS page, trim_scale(f.amount) AS amount, f.currency,
        split_part(t.last_seen #>> '{offer,price}', ' ', 1)::numeric = f.amount
            AND split_part(t.last_seen #>> '{offer,price}', ' ', 2) = f.currency AS is_equal
    FROM scrape_targets t CROSS JOIN LATERAL (
        SELECT p.amount, p.currency FROM prices p
        WHERE p.source_id = t.source_id AND p.source_product_id = t.product_id AND p.run_type <> 'SCRAPE'
        ORDER BY p.observed_at DESC LIMIT 1) f
    WHERE t.source_id = %(source)s AND t.product_id IS NOT NULL
      AND t.last_seen #>> '{offer,price}' ~ '^[0-9.]+ [A-Z]{3}$'
)
SELECT (SELECT count(*) FROM compared WHERE is_equal) AS equal,
       (SELECT count(*) FROM compared WHERE NOT is_equal) AS differing,
       (SELECT coalesce(jsonb_agg(e), '[]') FROM (
           SELECT url, page, amount || ' ' || currency AS feed FROM compared WHERE NOT is_equal ORDER BY url
           LIMIT %(most)s) e) AS examples
"""


@dataclass(frozen=True, kw_only=True)
class Step:
    """One step towards prices of a shop's pages that consumers see.

    Attributes:
        name: constant.
        label: for people.
        is_done: whether it is.
        is_needed: whether reading pages needs it; the others are for the person who decides to show prices.
        detail: what is known about it.
        next_step: what to do if it is not done.
        examples: such as pages that were read, or prices that differ.
    """

    name: str
    label: str
    is_done: bool
    is_needed: bool = False
    detail: str = ""
    next_step: str = ""
    examples: tuple[dict[str, Any], ...] = ()


def readiness(source: Source) -> list[Step]:
    """Return the steps of a source, with its retailer, in their order."""
    return [*missing_for_reading(source), _samples(source), _first_run(source), _comparison(source), _visible(source)]


def missing_for_reading(source: Source) -> list[Step]:
    """Return the steps without which no page is read."""
    config = settings.CONFIG
    has_contact = bool(config.scrape_contact_url and config.scrape_contact_mail)
    reviewed = source.tos_reviewed_at
    site_problem = adapter_problem(source, source.adapter_id)
    robots = _robots(source)
    return [
        Step(
            name="terms", label="Terms reviewed", is_needed=True, is_done=reviewed is not None,
            detail=f"{source.tos_approved_by} on {reviewed:%Y-%m-%d}: {source.tos_note or ''}" if reviewed else "",
            next_step="Read the shop's terms of service and record who allowed scraping, and why.",
        ),
        robots,
        Step(
            name="adapter", label="Adapter chosen", is_needed=True, is_done=not site_problem,
            detail=site_problem or str(source.adapter_id), next_step="Choose the adapter that reads this shop.",
        ),
        Step(
            name="contact", label="Contact configured", is_needed=True, is_done=has_contact,
            detail=f"{config.scrape_contact_url}, {config.scrape_contact_mail}" if has_contact else "",
            next_step="Set HARVESTER_SCRAPE_CONTACT_URL and HARVESTER_SCRAPE_CONTACT_MAIL, so that shops see who asks.",
        ),
    ]  # fmt: skip


def adapter_problem(source: Source, adapter_id: str | None) -> str:
    """Return why an adapter cannot read a source; empty if it can."""
    if adapter_id is None:
        return "No adapter was chosen."
    try:
        site = site_named(adapter_id)
    except KeyError:
        return f"There is no adapter {adapter_id}."
    if site.requires_js:
        return f"{site.title} needs a browser, which is not available."
    foreign = domains_of(source) - set(site.domains)
    if site.domains and foreign:
        return f"{site.title} reads {', '.join(site.domains)} only, not {', '.join(sorted(foreign))}."
    return ""


def warnings(source: Source) -> list[str]:
    """Return what is allowed and probably not meant: offers that expire before their page is read again."""
    hours = source.expiry_hours
    if hours is None:
        return []
    lines = ScrapeTarget.objects.filter(source=source, enabled=True, schedule__isnull=False)
    found = []
    for line in lines.order_by("schedule").values_list("schedule", flat=True).distinct():
        gap = longest_gap(str(line))
        if gap is not None and timedelta(hours=hours) < 2 * gap:
            found.append(
                f"Offers expire after {hours} h, and `{line}` reads pages only every {gap.total_seconds() / 3600:g} h: "
                "one page that cannot be read makes its offer disappear. Raise the expiry, or read them more often."
            )
    return found


def longest_gap(line: str, after: datetime | None = None) -> timedelta | None:
    """Return the longest time between two moments of a checked cron line; None if it has fewer than two."""
    moments = islice(CronSim(line, after or _now()), _MOMENTS)
    return max((later - earlier for earlier, later in pairwise(moments)), default=None)


def origins_of(source: Source) -> list[str]:
    """Return the origins of a source's enabled pages, or of its website if it has none."""
    with connection.cursor() as cursor:
        cursor.execute(_ORIGINS, [source.pk, MOST_ORIGINS])
        found = [origin for (origin,) in cursor.fetchall()]
    return robots_cache.origins_of(found or [source.url, source.retailer.website])


def _now() -> datetime:
    with connection.cursor() as cursor:
        cursor.execute("SELECT clock_timestamp()")
        moment: datetime = cursor.fetchone()[0]
    return moment


_ROBOTS_WORDS: Final = {robots_cache.RULES: "known", robots_cache.NONE: "there is none, so everything is allowed"}


def _robots(source: Source) -> Step:
    known = [(origin, robots_cache.look(origin)) for origin in origins_of(source)]
    missing = [origin for origin, file in known if file is None or not file.is_current or file.state == "UNAVAILABLE"]
    step, detail = (
        "Check robots.txt of the shop.",
        ", ".join(f"{file.origin}: {_ROBOTS_WORDS.get(file.state, file.state)}" for _, file in known if file),
    )
    if not source.robots_compliant:
        who = source.robots_set_by
        detail = f"{who} switched it off." if who else "robots.txt forbids every page."
        step = (
            "Ask the shop; an admin can switch it on again." if who else "It switches itself on when a page is allowed."
        )
    elif missing:
        detail = f"Not known for {', '.join(missing[:3])}."
    is_done = source.robots_compliant and bool(known) and not missing
    return Step(
        name="robots", label="Robots checked", is_needed=True, is_done=is_done, detail=detail, next_step=step
    )  # fmt: skip


def _samples(source: Source) -> Step:
    pages = KeptPage.objects.filter(source=source, outcome=PageOutcome.OFFER).order_by("url", "-fetched_at")
    rows = pages.distinct("url").values("url", "found", "fetched_at")[:SAMPLES]
    found: list[dict[str, Any]] = [dict(row) for row in rows]
    # A shop of which only a few pages are read has no more samples.
    needed = max(1, min(SAMPLES, ScrapeTarget.objects.filter(source=source, enabled=True).count()))
    return Step(
        name="samples", label="Sample pages", is_done=len(found) >= needed,
        detail=f"{len(found)} of {needed} pages were read.", examples=tuple(found),
        next_step="Read all pages once, then compare what was read with the pages.",
    )  # fmt: skip


def _first_run(source: Source) -> Step:
    run = (
        Run.objects.filter(kind=RUN_KIND, subject_id=source.pk).exclude(status=RunStatus.RUNNING).order_by("no").last()
    )
    counts: Sequence[tuple[str, int]] = []
    if run is not None:
        with connection.cursor() as cursor:
            cursor.execute(_OUTCOMES, [run.pk, run.started_at])
            counts = cursor.fetchall()
    return Step(
        name="first_run", label="First run", is_done=run is not None,
        detail=f"Run {run.no}: {summary(counts)}." if run else "", next_step="Read all pages once; nobody sees it.",
    )  # fmt: skip


def summary(counts: Iterable[tuple[str, int]]) -> str:
    """Return the outcomes of a run in a phrase, such as "40 read, 1 ambiguous price, 1 gone"."""
    read = {PageOutcome.OFFER.value, PageOutcome.NOT_MODIFIED.value, PageOutcome.OOS_NO_PRICE.value}
    given = dict(counts)
    total = sum(number for outcome, number in given.items() if outcome in read)
    others = [
        f"{number:,} {outcome.lower().replace('_', ' ')}" for outcome, number in given.items() if outcome not in read
    ]
    return ", ".join([f"{total:,} read", *others])


def _comparison(source: Source) -> Step:
    [found] = fetch(_COMPARED, {"source": source.pk, "most": MOST_EXAMPLES})
    compared = found["equal"] + found["differing"]
    detail = f"{found['equal']:,} prices equal those of the feed, {found['differing']:,} differ."
    return Step(
        name="comparison", label="Comparison with the feed", is_done=compared > 0 and not found["differing"],
        detail=detail if compared else "No page is linked to a product of a feed.",
        next_step="Look at the prices that differ: feed and page may have been read at different times.",
        examples=tuple(json.loads(found["examples"])),
    )  # fmt: skip


def _visible(source: Source) -> Step:
    is_shown = source.visibility == Visibility.ELIGIBLE
    return Step(
        name="visible", label="Shown to consumers", is_done=is_shown,
        detail=f"Consumers {'see' if is_shown else 'do not see'} the prices of its pages.",
        next_step="Show its prices to consumers once they are right.",
    )  # fmt: skip
