"""Addresses of pages by the kind of object, as the audit log and alerts name it."""

from functools import cache
from html import escape
from typing import Any
from uuid import UUID

from django.urls import NoReverseMatch, reverse
from django.utils.safestring import SafeString

#: Kind of object -> the name of its page's address.
PAGES = {
    "adapter": "admin:scraping_adapter_change",
    "alert": "admin:ops_alert_change",
    "api_key": "admin:ops_apikey_change",
    "correction": "admin:catalog_pricecorrection_change",
    "feed": "admin:feeds_feed_change",
    "feeds": "admin:feeds_feed_changelist",
    "fetch_request": "admin:scraping_try_change",
    "job": "admin:engine_job_change",
    "offer": "admin:catalog_offer_change",
    "quarantine": "admin:scraping_quarantineentry_change",
    "retailer": "admin:catalog_retailer_change",
    "run": "admin:runs_run_change",
    "runs": "admin:runs_run_changelist",
    "scrape_import": "admin:scraping_import_change",
    "scrape_target": "admin:scraping_scrapetarget_change",
    "shop": "admin:scraping_shop_change",
    "shops": "admin:scraping_shop_changelist",
    "source": "admin:catalog_source_change",
    "user": "admin:ops_user_change",
}


#: An address works the same for all numbers and all UUIDs, so that one example shows the pattern.
_SAMPLES: dict[type, Any] = {int: 918_273_645, UUID: UUID(int=918_273_645)}


def address(kind: str, *ids: Any) -> str | None:
    """Return the address of an object's page, if it has one. A key of several parts may be one text with slashes."""
    kinds = tuple(type(value) for value in ids)
    if not _SAMPLES.keys() >= set(kinds):
        return _reversed(kind, [part for value in ids for part in str(value).split("/")])
    pattern = _pattern(kind, kinds)
    return pattern and pattern.format(*ids)


@cache
def _pattern(kind: str, kinds: tuple[type, ...]) -> str | None:
    """Return an address with braces for the ids. Reversing dozens of addresses took a quarter of a page's time."""
    found = _reversed(kind, [_SAMPLES[of] for of in kinds])
    for of in kinds:
        found = found and found.replace(f"/{_SAMPLES[of]}/", "/{}/", 1)
    return found


def _reversed(kind: str, ids: list[Any]) -> str | None:
    try:
        return reverse(PAGES[kind], args=ids)
    except (KeyError, NoReverseMatch):
        return None


def link(kind: str, *ids: Any, text: str) -> SafeString:
    """Return the text as a link to the object's page, or the text alone if it has none."""
    where, label = address(kind, *ids), escape(str(text))
    if where is None:
        return SafeString(f'<span class="hv-object" title="{label}">{label}</span>')
    return SafeString(f'<a class="hv-object" href="{escape(where)}" title="{label}">{label}</a>')
