"""Feeds for tests: a retailer, a source and a feed that points to a server of this machine."""

from dataclasses import replace
from typing import Any

from harvester.catalog.models import Retailer, Source
from harvester.catalog.states import SourceKind
from harvester.feeds.models import Feed
from harvester.feeds.partner_connection import OWNER_KIND
from harvester.guards import secrets
from harvester.kernel.actor import Actor
from tests.support import sftp_server

ADMIN = Actor(kind="person", id="user:1", name="ann")
PATH = "/feeds/catalog.csv"


def make_source(name: str = "Acme via Impact", kind: SourceKind = SourceKind.AFFILIATE_FEED, **columns: Any) -> Source:
    retailer = Retailer.objects.create(name=f"retailer of {name}")
    return Source.objects.create(retailer=retailer, name=name, kind=kind, **{"expiry_hours": 48, **columns})


def make_feed(source: Source | None = None, *, password: str = sftp_server.PASSWORD, **columns: Any) -> Feed:
    """A feed as rows, without the verbs: in any state, with a password unless that is empty."""
    columns = {
        "network": "impact",
        "host": sftp_server.HOST,
        "path": PATH,
        "username": sftp_server.USERNAME,
        "created_by": ADMIN.id,
        "secret_version": int(bool(password)),
        "secret_fields": ["password"] if password else [],
        **columns,
    }
    feed = Feed.objects.create(source=source or make_source(), **columns)
    if password:
        secrets.put(OWNER_KIND, feed.id, {"password": password})
    return Feed.objects.select_related("source").get(pk=feed.pk)


def allow_loopback(settings: Any, **more: Any) -> None:
    """Let feeds reach this machine."""
    settings.CONFIG = replace(settings.CONFIG, egress_allow=("127.0.0.0/8", "::1/128"), **more)
