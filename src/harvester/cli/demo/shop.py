"""Sets up the shops' sources and feeds by the same verbs that people use. Needs Django."""

from dataclasses import dataclass
from typing import Any

from harvester.catalog import display_primary, retailers, sources
from harvester.catalog.models import Retailer, Source
from harvester.catalog.states import SourceKind
from harvester.cli.actor import operator
from harvester.cli.demo import partner as sftp
from harvester.cli.demo.catalog import HARBOUR_SITE, SITE
from harvester.cli.demo.partner import Partner
from harvester.feeds import verbs
from harvester.feeds.models import Feed
from harvester.feeds.states import FeedStatus
from harvester.kernel.domains import domain_of
from harvester.kernel.errors import NotFound


@dataclass(frozen=True, kw_only=True)
class Shop:
    """An invented retailer and how its catalog comes.

    Attributes:
        name: of the source, by which the command line knows the feed.
        compression: of the file.
    """

    name: str
    retailer: str
    site: str
    network: str
    path: str
    compression: str


KESTREL = Shop(
    name="kestrel-pine",
    retailer="Kestrel & Pine Outfitters",
    site=SITE,
    network="impact",
    path="/Kestrel-Pine/Kestrel-Pine-Outfitters_IR.txt.gz",
    compression="gzip",
)
HARBOUR_STREET = Shop(
    name="harbour-street",
    retailer="Harbour Street Outdoor",
    site=HARBOUR_SITE,
    network="google_merchant",
    path="/Harbour-Street/products.tsv",
    compression="none",
)


def open_shop(shop: Shop, partner: Partner) -> Feed:
    """The feed, ready to run against this partner; what an earlier demo made is used again."""
    who = operator()
    source = _source(shop)
    feed = Feed.objects.filter(source=source).first() or verbs.create(who, source.id, {"network": shop.network})
    if feed.status == FeedStatus.ENABLED:
        # Its server is another one from now on: another port, another key.
        verbs.pause(who, feed.id)
    verbs.update(who, feed.id, _settings(shop, partner))
    verbs.change_credentials(who, feed.id, password=partner.password, replace=True)
    verbs.approve_host_key(who, feed.id, partner.host_key)
    return _switch_on(feed)


def _source(shop: Shop) -> Source:
    who = operator()
    retailer = Retailer.objects.filter(domain=domain_of(shop.site)).first()
    if retailer is None:
        retailer = retailers.create(who, name=shop.retailer, website=shop.site)
    try:
        source = sources.find(shop.name)
    except NotFound:
        kind = SourceKind.AFFILIATE_FEED
        source = sources.create(
            who, retailer.id, name=shop.name, kind=kind, affiliate_network=shop.network, upc_trusted=True
        )
    return display_primary.set_display_primary(who, source.id)


def _settings(shop: Shop, partner: Partner) -> dict[str, Any]:
    return {
        "host": sftp.HOST,
        "port": partner.port,
        "path": shop.path,
        "username": sftp.USERNAME,
        "compression": shop.compression,
        # By hand only: a run of its own would come between the runs of the story.
        "schedule_hours": None,
    }


def _switch_on(feed: Feed) -> Feed:
    who = operator()
    feed.refresh_from_db()
    if feed.status == FeedStatus.DRAFT:
        return verbs.enable(who, feed.id)
    if feed.status == FeedStatus.DISABLED:
        return verbs.re_enable(who, feed.id, acknowledged=True)
    return verbs.resume(who, feed.id)
