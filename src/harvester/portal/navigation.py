"""The menu, and the tabs that belong together."""

from typing import Any
from uuid import UUID

from django.http import HttpRequest
from django.urls import reverse


def _item(title: str, icon: str, name: str) -> dict[str, Any]:
    """An item is marked on its page and on those below it; Unfold would also mark it on /feeds/<id>/runs/."""
    link = reverse(f"admin:{name}")
    is_below = link != reverse("admin:index")

    def is_active(request: HttpRequest) -> bool:
        return request.path.startswith(link) if is_below else request.path == link

    return {"title": title, "icon": icon, "link": link, "active": is_active}


def menu(_request: HttpRequest) -> list[dict[str, Any]]:
    """Only what operators need; everybody who is logged in may look at all of it."""
    return [
        {
            "items": [
                _item("Dashboard", "space_dashboard", "index"),
                _item("Affiliate feeds", "rss_feed", "feeds_feed_changelist"),
                _item("Runs", "sync", "catalog_run_changelist"),
                _item("Jobs", "stacks", "engine_job_changelist"),
            ]
        },
        {
            "title": "Catalog",
            "items": [
                _item("Offers", "sell", "catalog_offer_changelist"),
                _item("Retailers", "storefront", "catalog_retailer_changelist"),
                _item("Sources", "conversion_path", "catalog_source_changelist"),
                _item("Corrections", "build", "catalog_pricecorrection_changelist"),
                _item("Review queue", "rule", "catalog_review_changelist"),
            ],
        },
        {
            "title": "Operations",
            "items": [
                _item("Alerts", "notifications", "ops_alert_changelist"),
                _item("Periodic jobs", "event_repeat", "engine_periodicjob_changelist"),
                _item("Audit trail", "policy", "ops_auditevent_changelist"),
                _item("Users", "group", "ops_user_changelist"),
                _item("API keys", "key", "ops_apikey_changelist"),
            ],
        },
    ]


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
