"""One run of a feed while it is in progress."""

from dataclasses import dataclass

from harvester.feeds.models import Feed
from harvester.feeds.networks import network_named
from harvester.kernel.network import Network
from harvester.runs.context import RunContext


def log_fields(feed: Feed) -> dict[str, str]:
    """Return the fields of every event about a feed."""
    return {"feed_id": str(feed.id), "source_id": str(feed.source_id), "network": feed.network}


@dataclass(eq=False, kw_only=True)
class FeedRunContext(RunContext):
    """What every step of a feed's run needs."""

    subject: Feed

    @property
    def feed(self) -> Feed:
        return self.subject

    @property
    def network(self) -> Network:
        return network_named(self.feed.network)
