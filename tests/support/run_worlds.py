"""One world for each kind of run: a subject, and everything around it that its runs read and write.

The contract suite drives all kinds through these.
"""

from typing import Any

from harvester.evidence import verbs as evidence
from harvester.evidence.runs import ACTOR_RUNS
from harvester.feeds import verbs as feeds
from harvester.feeds.runs import FEED_RUNS
from harvester.runs.kinds import RunKind
from harvester.scraping import verbs as scraping
from harvester.scraping.runs import SCRAPE_RUNS
from tests.support import scrape_world
from tests.support.actor_server import ActorServer, posts
from tests.support.feed_world import OLGA, World
from tests.support.shop_server import ShopServer, page
from tests.support.tables import rows


class FeedRunWorld:
    """A feed whose file is on an SFTP server."""

    kind: RunKind = FEED_RUNS

    def __init__(self, server: Any) -> None:
        self.world = World(server)
        self.subject = self.world.feed
        self.put_good()

    def put_good(self) -> None:
        """What the next run reads passes every gate, and is not what the last one read."""
        self._price = getattr(self, "_price", 10) + 1
        self.world.put(*range(100, 140), Price=f"{self._price}.00")

    def put_suspicious(self) -> None:
        """A gate holds the next run."""
        self.world.put(100, 101, 102, Price=f"{self._price}.00")

    def put_broken(self) -> None:
        """The next run fails, and no other attempt could help."""
        self.world.put_bytes(b"<html>Sorry</html>")

    def request(self) -> Any:
        return feeds.run_now(OLGA, self.subject.pk)

    def facts(self) -> Any:
        """What consumers see."""
        return self.world.shown()


class PageRunWorld:
    """A source with two product pages on an HTTP server."""

    kind: RunKind = SCRAPE_RUNS

    def __init__(self, server: ShopServer) -> None:
        self.server = server
        self.subject = scrape_world.source(url=server.url, visibility="ELIGIBLE", is_display_primary=True)
        for number in (1, 2):
            scraping.add_target(OLGA, self.subject.pk, f"{server.url}/p/{number}")
        self.put_good()

    def put_good(self) -> None:
        self._price = getattr(self, "_price", 10) + 1
        for number in (1, 2):
            self.server.pages[f"/p/{number}"] = page(f"Thing {number}", f"{self._price}.50", sku=f"T-{number}")

    def request(self) -> Any:
        return scraping.run_now(OLGA, self.subject.pk)

    def facts(self) -> Any:
        found = rows(
            "SELECT p.identity_value, v.amount FROM visible_offers v "
            "JOIN source_products p ON p.source_id = v.source_id AND p.id = v.product_id"
        )
        return {value: float(amount) for value, amount in found}


class ActorRunWorld:
    """A connection to an actor."""

    kind: RunKind = ACTOR_RUNS

    def __init__(self, server: ActorServer) -> None:
        self.server = server
        self.subject = evidence.connect(OLGA, "Acme posts", actor_name="acme~posts", server=server.url, asked={"n": 1})
        self.put_good()

    def put_good(self) -> None:
        self._first = getattr(self, "_first", 0) + 1
        self.server.rows, self.server.status = posts(20, self._first), "SUCCEEDED"

    def put_suspicious(self) -> None:
        self.server.rows = posts(3, 1000)

    def put_broken(self) -> None:
        self.server.status = "FAILED"

    def request(self) -> Any:
        return evidence.run_now(OLGA, self.subject.pk)

    def facts(self) -> Any:
        return {key for (key,) in rows("SELECT item_key FROM evidence_items")}
