"""The menu, and the tabs of jobs, feeds and shops."""

from functools import cache
from typing import Any, Final
from uuid import UUID

from django.http import HttpRequest
from django.urls import reverse
from django.utils.safestring import SafeString

#: Headings, each with its items: title, icon and address. Every logged-in user may look at all of them.
_MENU: Final = (
    (
        "",
        ("Dashboard", "space_dashboard", "index"),
        ("Affiliate feeds", "rss_feed", "feeds_feed_changelist"),
        ("Runs", "sync", "runs_run_changelist"),
        ("Jobs", "stacks", "engine_job_changelist"),
    ),
    (
        "Scraping",
        ("Shops", "shopping_cart", "scraping_shop_changelist"),
        ("Pages", "description", "scraping_scrapetarget_changelist"),
        ("Quarantine", "gpp_maybe", "scraping_quarantineentry_changelist"),
        ("URL health", "link_off", "scraping_health_changelist"),
        ("Import", "upload_file", "scraping_import_changelist"),
        ("Adapters", "extension", "scraping_adapter_changelist"),
        ("Try a URL", "travel_explore", "scraping_try_changelist"),
    ),
    (
        "Catalog",
        ("Offers", "sell", "catalog_offer_changelist"),
        ("Retailers", "storefront", "catalog_retailer_changelist"),
        ("Sources", "conversion_path", "catalog_source_changelist"),
        ("Corrections", "build", "catalog_pricecorrection_changelist"),
        ("Review queue", "rule", "catalog_review_changelist"),
    ),
    (
        "Operations",
        ("Alerts", "notifications", "ops_alert_changelist"),
        ("Periodic jobs", "event_repeat", "engine_periodicjob_changelist"),
        ("Audit log", "policy", "ops_auditevent_changelist"),
        ("Users", "group", "ops_user_changelist"),
        ("API keys", "key", "ops_apikey_changelist"),
    ),
)


def menu(request: HttpRequest) -> SafeString:
    """Return the menu, with the item marked that this page is on or below."""
    names = [name for _, *items in _MENU for _, _, name in items if name != "index"]
    found = next((name for name in names if request.path.startswith(_link(name))), "")
    return _menu_html(found or ("index" if request.path == _link("index") else ""))


@cache
def _link(name: str) -> str:
    return reverse(f"admin:{name}")


@cache
def _menu_html(active: str) -> SafeString:
    parts = []
    for title, *items in _MENU:
        parts.append(f"<h2>{title}</h2><ul>" if title else "<ul>")
        for label, icon, name in items:
            mark = ' class="hv-active" aria-current="page"' if name == active else ""
            symbol = f'<span class="material-symbols-outlined" aria-hidden="true">{icon}</span>'
            parts.append(f'<li><a href="{_link(name)}"{mark}>{symbol}{label}</a></li>')
        parts.append("</ul>")
    return SafeString("".join(parts))


def job_tabs(request: HttpRequest) -> list[dict[str, Any]]:
    tabs = (
        ("All jobs", "admin:engine_job_changelist"),
        ("Recent", "admin:engine_job_recent"),
        ("Stuck", "admin:engine_job_stuck"),
        ("Events", "admin:engine_jobevent_changelist"),
    )
    return [{"title": title, "link": reverse(name), "active": request.path == reverse(name)} for title, name in tabs]


def feed_tabs(request: HttpRequest, feed_id: UUID) -> list[dict[str, Any]]:
    tabs = (
        ("Configuration", "admin:feeds_feed_change"),
        ("Runs", "admin:feeds_feed_runs"),
        ("Metrics", "admin:feeds_feed_metrics"),
    )
    links = [(title, reverse(name, args=[feed_id])) for title, name in tabs]
    return [{"title": title, "link": link, "active": request.path == link} for title, link in links]


def shop_tabs(request: HttpRequest, source_id: UUID) -> list[dict[str, Any]]:
    tabs = (
        ("Overview", "admin:scraping_shop_change"),
        ("Field coverage", "admin:scraping_shop_coverage"),
        ("Overrides", "admin:scraping_shop_overrides"),
        ("Settings", "admin:scraping_shop_settings"),
    )
    links = [(title, reverse(name, args=[source_id])) for title, name in tabs]
    here = [link for _, link in links if request.path.startswith(link)]
    active = max(here, key=len, default="")
    return [{"title": title, "link": link, "active": link == active} for title, link in links]
