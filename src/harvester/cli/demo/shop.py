"""Sets up the shop's source and feed by the same verbs that people use. Needs Django."""

from typing import Any

from harvester.catalog import primary, retailers, sources
from harvester.catalog.models import Retailer, Source
from harvester.catalog.states import SourceKind
from harvester.cli.actor import operator
from harvester.cli.demo import partner as sftp
from harvester.cli.demo.catalog import SITE
from harvester.cli.demo.partner import Partner
from harvester.feeds import verbs
from harvester.feeds.models import Feed
from harvester.feeds.states import FeedStatus
from harvester.kernel.domains import domain_of
from harvester.kernel.errors import NotFound

RETAILER = "Kestrel & Pine Outfitters"
#: The source's name, by which the command line knows the feed.
NAME = "kestrel-pine"


def open_shop(partner: Partner) -> Feed:
    """The feed, ready to run against this partner; what an earlier demo made is used again."""
    who = operator()
    source = _source()
    feed = Feed.objects.filter(source=source).first() or verbs.create(who, source.id, {"network": "impact"})
    if feed.status == FeedStatus.ENABLED:
        # Its server is another one from now on: another port, another key.
        verbs.pause(who, feed.id)
    verbs.update(who, feed.id, _settings(partner))
    verbs.change_credentials(who, feed.id, password=partner.password, replace=True)
    verbs.approve_host_key(who, feed.id, partner.host_key)
    return _switch_on(feed)


def _source() -> Source:
    who = operator()
    retailer = Retailer.objects.filter(domain=domain_of(SITE)).first()
    if retailer is None:
        retailer = retailers.create(who, name=RETAILER, website=SITE)
    try:
        source = sources.find(NAME)
    except NotFound:
        source = sources.create(who, retailer.id, name=NAME, kind=SourceKind.AFFILIATE_FEED, affiliate_network="impact")
    return primary.set_display_primary(who, source.id)


def _settings(partner: Partner) -> dict[str, Any]:
    return {
        "host": sftp.HOST,
        "port": partner.port,
        "path": sftp.PATH,
        "username": sftp.USERNAME,
        "compression": "gzip",
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
