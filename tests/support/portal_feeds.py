"""Feeds for tests of the portal, made without running anything."""

import json
from datetime import timedelta
from typing import Any

from django.utils import timezone

from harvester.catalog.models import Retailer, Source
from harvester.feeds.models import Feed, FeedRun
from harvester.guards.host_keys import HostKey
from harvester.runs.models import Run
from tests.support.portal import job

KEY = HostKey.parse("ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIOMqqnkVzrm0SdG6UOoqKLsabgH5C9okWi0dh2l9GKJl")
#: A draft that has everything but credentials and an approved host key.
COMPLETE = {"host": "sftp.example.com", "path": "/catalog.csv", "username": "acme"}
#: What a feed that runs has.
READY = {**COMPLETE, "secret_fields": ["password"], "secret_version": 1, "host_keys": str(KEY)}

SCRIPT = "<script>alert(1)</script>"
#: The results of feed tests for a file that can be read and for an unknown server.
FOUND = {
    "success": True,
    "error": None,
    "host_keys": [{"type": KEY.type, "fingerprint": KEY.fingerprint, "line": str(KEY)}],
    "bytes_read": 2048,
    "is_whole": False,
    "compression": "GZIP",
    "rows_detected": 100,
    "rows_valid": 98,
    "has_more_rows": True,
    "family": "A (IR)",
    "binding": {"title": ["Product Name"]},
    "unbound": ["Mystery"],
    "dialect": {"delimiter_name": "pipe", "quoted": True, "encoding": "utf-8", "header": ["Product Name"]},
    "rejects": {"MISSING_TITLE": 2},
    "warnings": {"BAD_GTIN": 5},
    "samples": {"MISSING_TITLE": [{"line": 7, "row": SCRIPT, "reason": "it is empty"}]},
    "rows": [
        {
            "item_id": None,
            "sku": "S-1",
            "title": "Tent",
            "amount": "9.99",
            "currency": "EUR",
            "url": "u",
            "in_stock": True,
        }
    ],
}
UNKNOWN = {
    "success": False,
    "error": {"code": "HOST_KEY_UNKNOWN", "message": "Nobody has approved the key."},
    "seen_host_key": {"type": KEY.type, "fingerprint": KEY.fingerprint, "line": str(KEY)},
}


def feed(name: str = "Acme by Impact", **fields: Any) -> Feed:
    """A feed with a source and a retailer of its own; a draft unless something else is said."""
    about = {key: fields.pop(key) for key in ("is_display_primary", "last_promoted_count") if key in fields}
    if "last_promoted_count" in about:
        about["last_promoted_at"] = timezone.now()
    retailer = Retailer.objects.create(name=name.split(maxsplit=1)[0])
    source = Source.objects.create(retailer=retailer, name=name, kind="AFFILIATE_FEED", expiry_hours=48, **about)
    return Feed.objects.create(**{"source": source, "network": "impact", "created_by": "test", **fields})


def run(
    of: Feed, status: str = "SUCCEEDED", *, hours_ago: float = 1.0, figures: dict | None = None, **fields: Any
) -> Run:
    """A run that nobody has run."""
    if status == "SUCCEEDED":
        fields.setdefault("outcome", "PROMOTED")
    began = timezone.now() - timedelta(hours=hours_ago)
    made = Run.objects.create(
        **{
            "kind": "AFFILIATE_FEED",
            "subject_id": of.pk,
            "source_id": of.source_id,
            "trigger": "SCHEDULED",
            "status": status,
            **fields,
        },
        started_at=began,
        finished_at=None if status == "RUNNING" else began + timedelta(seconds=1.5),
        duration_ms=None if status == "RUNNING" else 1500,
    )
    FeedRun.objects.create(run=made, feed=of, **(figures or {}))
    made.refresh_from_db()
    return made


def feed_pages() -> list[str]:
    """Addresses of every kind of page about feeds, with something on them."""
    long = "Acme Outdoors and Everything Else by Impact in Europe"
    running = feed(long, status="ENABLED", schedule_hours=6, manual_run_requested_at=timezone.now(), **READY)
    run(running, "FAILED", error_code="AUTH_FAILED", error="The server did not accept the password. " * 8)
    draft = feed(seen_host_key=str(KEY), **COMPLETE)
    found = json.dumps(FOUND)
    works = job("succeeded", "feeds.test", args={"feed_id": str(running.pk)}, result=found)
    refused = job("succeeded", "feeds.test", args={"feed_id": str(draft.pk)}, result=json.dumps(UNKNOWN))
    mine = f"/feeds/{running.pk}/"
    return [
        *("/feeds/", "/feeds/?status=ENABLED&q=acme", "/feeds/add/", mine, f"{mine}runs/", f"{mine}metrics/"),
        *(f"{mine}edit/", f"{mine}tests/{works}/", f"/feeds/{draft.pk}/", f"/feeds/{draft.pk}/tests/{refused}/"),
    ]
