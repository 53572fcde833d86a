"""The menu, and the tabs that belong together."""

from functools import cache
from typing import Any, Final
from uuid import UUID

from django.http import HttpRequest
from django.urls import reverse
from django.utils.safestring import SafeString

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


def menu(request: HttpRequest) -> SafeString:
    """The menu, with the item of this page marked."""
    names = [name for _, *items in _MENU for _, _, name in items]
    return _drawn(next((name for name in names if _is_at(request.path, name)), ""))


def _is_at(path: str, name: str) -> bool:
    """An item is marked on its page and on those below it."""
    return path == _link(name) if name == "index" else path.startswith(_link(name))


@cache
def _link(name: str) -> str:
    return reverse(f"admin:{name}")


@cache
def _drawn(active: str) -> SafeString:
    """It stands on every page and is the same on all pages below one item."""
    return SafeString("".join(_group(active, title, items) for title, *items in _MENU))


def _group(active: str, title: str, items: list[tuple[str, str, str]]) -> str:
    heading = f"<h2>{title}</h2>" if title else ""
    return f"{heading}<ul>{''.join(_item(active, *item) for item in items)}</ul>"


def _item(active: str, title: str, icon: str, name: str) -> str:
    mark = ' class="hv-active" aria-current="page"' if name == active else ""
    symbol = f'<span class="material-symbols-outlined" aria-hidden="true">{icon}</span>'
    return f'<li><a href="{_link(name)}"{mark}>{symbol}{title}</a></li>'


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
