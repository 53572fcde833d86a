"""Random stories of a feed and pages on one source, compared with a model: the newest recorded price is shown."""

import random

import pytest
from tests.support.feed_world import OLGA, World, allow_loopback
from tests.support.feeds import row
from tests.support.generated import seeds
from tests.support.sftp_server import SftpServer
from tests.support.shop_server import ShopServer, page
from tests.support.tables import rows
from tests.support.workers import run_until_idle

from harvester.catalog import sources
from harvester.catalog.models import Source
from harvester.catalog.offers import differences
from harvester.runs.models import Run
from harvester.scraping import verbs as scraping

STEPS = 20
PRODUCTS = range(1000, 1024)
#: So many of them have a page.
PAGES = 6


class Model:
    """Each product's recorded prices with the place of their observation in the story, by kind of run."""

    def __init__(self):
        self.at = 0
        self.is_eligible = True
        self.feed = {}
        self.page = {}
        self.held = None

    def record(self, kind, key, price, at):
        """Prices are compared with the last one of the same kind."""
        known = kind.setdefault(key, [])
        if not known or known[-1][1] != price:
            known.append((at, price))

    def shown(self):
        found = {}
        for key, prices in self.feed.items():
            pages = self.page.get(key, []) if self.is_eligible else []
            found[key] = max([*prices, *pages])[1]
        return found


class Story:
    def __init__(self, world, shop, seed):
        self.world, self.shop, self.model, self.random = world, shop, Model(), random.Random(seed)
        self.prices = {number: float(number) / 100 for number in PRODUCTS}
        self.steps = []

    def begin(self):
        self.run_feed()
        for number in list(PRODUCTS)[:PAGES]:
            [(product,)] = rows("SELECT id FROM source_products WHERE identity_value = %s", f"S-{number}")
            scraping.add_target(OLGA, self.world.source.pk, f"{self.shop.url}/{number}", product_id=product)
        self.model.at += 1
        self.run_pages()

    def step(self):
        self.model.at += 1
        ways = [self.run_feed] * 3 + [self.run_pages] * 3 + [self.hold, self.switch]
        if self.model.held:
            ways += [self.approve, self.approve, self.reject]
        self.random.choice(ways)()

    def run_feed(self):
        """Some prices change a little, which no gate holds."""
        for number in self.random.sample(PRODUCTS, 5):
            self.prices[number] = round(self.prices[number] * self.random.choice((0.9, 1.1)), 2)
        assert self._read_feed() == "PROMOTED", self.steps
        self.model.held = None
        self._record_feed(self.model.at)

    def hold(self):
        """All prices double."""
        before = dict(self.prices)
        self.prices = {number: round(price * 2, 2) for number, price in self.prices.items()}
        assert self._read_feed() == "HELD", self.steps
        self.model.held = (self.model.at, self.prices)
        self.prices = before

    def approve(self):
        held = Run.objects.get(source_id=self.world.source.pk, outcome="HELD")
        assert self.world.approve(held).state == "succeeded"
        at, self.prices = self.model.held
        self.model.held = None
        self._record_feed(at)
        self.steps.append(f"approved the run of step {at}")

    def reject(self):
        self.world.reject(Run.objects.get(source_id=self.world.source.pk, outcome="HELD"))
        self.model.held = None
        self.steps.append("rejected")

    def run_pages(self):
        for number in list(PRODUCTS)[:PAGES]:
            price = self.random.choice((None, "5.00", "6.00", "7.00"))
            self.shop.pages[f"/{number}"] = page(price=price, sku=f"S-{number}") if price else 404
            if price:
                self.model.record(self.model.page, f"S-{number}", float(price), self.model.at)
        run = scraping.run_now(OLGA, self.world.source.pk)
        run_until_idle()
        self.steps.append(f"pages: {Run.objects.get(pk=run.pk).outcome}")

    def switch(self):
        self.model.is_eligible = not self.model.is_eligible
        sources.update(OLGA, self.world.source.pk, visibility="ELIGIBLE" if self.model.is_eligible else "INELIGIBLE")
        self.steps.append(f"eligible: {self.model.is_eligible}")

    def _read_feed(self):
        # No two files are the same, so none is skipped.
        nonce = self.random.randrange(10**9)
        lines = [row(n, Name=f"Thing {n}", Price=f"{price:.2f}") for n, price in self.prices.items()]
        self.world.put(*lines[:-1], row(list(PRODUCTS)[-1], Name=f"Thing {nonce}", Price=f"{self.prices[1023]:.2f}"))
        outcome = self.world.run().outcome
        self.steps.append(f"feed: {outcome}")
        return outcome

    def _record_feed(self, at):
        for number, price in self.prices.items():
            self.model.record(self.model.feed, f"S-{number}", price, at)

    def check(self):
        assert {key: price for key, (_, price, _) in self.world.shown().items()} == self.model.shown(), "; ".join(
            self.steps
        )
        assert differences() == [], "; ".join(self.steps)
        self.world.check()


@pytest.mark.parametrize("seed", seeds(1, 4))
def test_the_newest_price_is_shown_whichever_kind_of_run_recorded_it(database, settings, tmp_path, seed):
    allow_loopback(settings)
    with SftpServer(tmp_path) as server, ShopServer() as shop:
        world = World(server)
        # Prices that are only confirmed would make the story depend on ids.
        Source.objects.update(price_heartbeat_hours=720, visibility="ELIGIBLE")
        story = Story(world, shop, seed)
        story.begin()
        story.check()
        for _ in range(STEPS):
            story.step()
            story.check()
