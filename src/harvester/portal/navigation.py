"""The menu, and the tabs that belong together."""

from functools import cache
from typing import Any, Final
from uuid import UUID

from django.http import HttpRequest
from django.urls import reverse

#: Headings, and under each of them title, icon and address of an item. Only what operators need; everybody who is
#: logged in may look at all of it.
_MENU: Final = (
    (
        "",
        ("Dashboard", "space_dashboard", "index"),
        ("Affiliate feeds", "rss_feed", "feeds_feed_changelist"),
        ("Runs", "sync", "catalog_run_changelist"),
        ("Jobs", "stacks", "engine_job_changelist"),
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
        ("Audit trail", "policy", "ops_auditevent_changelist"),
        ("Users", "group", "ops_user_changelist"),
        ("API keys", "key", "ops_apikey_changelist"),
    ),
)


def menu(request: HttpRequest) -> list[dict[str, Any]]:
    """The menu's groups, with the item of this page marked."""
    return [{"title": title, "items": [_item(request.path, *item) for item in items]} for title, *items in _MENU]


def _item(path: str, title: str, icon: str, name: str) -> dict[str, Any]:
    """An item is marked on its page and on those below it."""
    link = _link(name)
    is_active = path == link if name == "index" else path.startswith(link)
    return {"title": title, "icon": icon, "link": link, "active": is_active}


@cache
def _link(name: str) -> str:
    return reverse(f"admin:{name}")


def job_tabs(request: HttpRequest) -> list[dict[str, Any]]:
    """The ways to look at jobs."""
    tabs = (
        ("All jobs", "admin:engine_job_changelist"),
        ("Recent", "admin:engine_job_recent"),
        ("Stuck", "admin:engine_job_stuck"),
        ("Events", "admin:engine_jobevent_changelist"),
    )
    return [{"title": title, "link": reverse(name), "active": request.path == reverse(name)} for title, name in tabs]


def feed_tabs(request: HttpRequest, feed_id: UUID) -> list[dict[str, Any]]:
    """The ways to look at a feed."""
    tabs = (
        ("Configuration", "admin:feeds_feed_change"),
        ("Runs", "admin:feeds_feed_runs"),
        ("Metrics", "admin:feeds_feed_metrics"),
    )
    links = [(title, reverse(name, args=[feed_id])) for title, name in tabs]
    return [{"title": title, "link": link, "active": request.path == link} for title, link in links]
