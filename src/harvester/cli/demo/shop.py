"""Sets up the shops' sources and feeds with the same verbs as the commands. Needs Django."""

from dataclasses import dataclass

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
    """An invented retailer and the source of its catalog.

    Attributes:
        name: of the source and so of the feed.
        path: of the catalog on the partner's server.
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
    """Return the feed, enabled and connected to this partner; what an earlier demo created is used again."""
    actor = operator()
    source = _source(shop)
    feed = Feed.objects.filter(source=source).first() or verbs.create(actor, source.id, {"network": shop.network})
    if feed.status == FeedStatus.ENABLED:
        # Paused, because each demo's server has a new port and a new key.
        verbs.pause(actor, feed.id)
    settings = {
        "host": sftp.HOST,
        "port": partner.port,
        "path": shop.path,
        "username": sftp.USERNAME,
        "compression": shop.compression,
        # Manual, because a scheduled run would come between the runs of the demo.
        "schedule_hours": None,
    }
    verbs.update(actor, feed.id, settings)
    verbs.change_credentials(actor, feed.id, password=partner.password, replace=True)
    verbs.approve_host_key(actor, feed.id, partner.host_key)
    feed.refresh_from_db()
    if feed.status == FeedStatus.DRAFT:
        return verbs.enable(actor, feed.id)
    if feed.status == FeedStatus.DISABLED:
        return verbs.re_enable(actor, feed.id, acknowledged=True)
    return verbs.resume(actor, feed.id)


def _source(shop: Shop) -> Source:
    actor = operator()
    retailer = Retailer.objects.filter(domain=domain_of(shop.site)).first()
    if retailer is None:
        retailer = retailers.create(actor, name=shop.retailer, website=shop.site)
    try:
        source = sources.find(shop.name)
    except NotFound:
        kind = SourceKind.AFFILIATE_FEED
        source = sources.create(
            actor, retailer.id, name=shop.name, kind=kind, affiliate_network=shop.network, upc_trusted=True
        )
    return display_primary.set_display_primary(actor, source.id)
