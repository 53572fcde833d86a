"""Where the page of a thing is, by the name that the audit trail, alerts and other pages give it."""

from html import escape
from typing import Any

from django.urls import NoReverseMatch, reverse
from django.utils.safestring import SafeString

#: What a thing is called -> the name of its page's address.
PAGES = {
    "alert": "admin:ops_alert_change",
    "api_key": "admin:ops_apikey_change",
    "correction": "admin:catalog_pricecorrection_change",
    "feed": "admin:feeds_feed_change",
    "feeds": "admin:feeds_feed_changelist",
    "job": "admin:engine_job_change",
    "offer": "admin:catalog_offer_change",
    "retailer": "admin:catalog_retailer_change",
    "run": "admin:catalog_run_change",
    "runs": "admin:catalog_run_changelist",
    "source": "admin:catalog_source_change",
    "user": "admin:ops_user_change",
}


def address(kind: str, *ids: Any) -> str | None:
    """The address of a thing's page; None where it has none. A key of several parts may be one text with slashes."""
    try:
        return reverse(PAGES[kind], args=[part for value in ids for part in str(value).split("/")])
    except (KeyError, NoReverseMatch):
        return None


def link(kind: str, *ids: Any, text: str) -> SafeString:
    """The text as a link to the thing's page, or the bare text where it has none."""
    where, words = address(kind, *ids), escape(str(text))
    if where is None:
        return SafeString(f'<span class="hv-object" title="{words}">{words}</span>')
    return SafeString(f'<a class="hv-object" href="{escape(where)}" title="{words}">{words}</a>')
