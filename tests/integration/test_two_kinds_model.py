"""Random stories of a feed and pages on one source, compared with a slow model of the rules in plain Python.

The page leads for 48 h after its last success, as long as the source is ELIGIBLE and until the feed is promoted after
that; presence is the feed's where it has the product, and the page's elsewhere.
"""

import random
from dataclasses import dataclass, field
from datetime import timedelta

import pytest
from django.db import connection, transaction
from tests.support.feed_world import OLGA, World, allow_loopback
from tests.support.feeds import row
from tests.support.generated import seeds
from tests.support.page_observations import observed, page_run, product_of
from tests.support.sftp_server import SftpServer
from tests.support.tables import rows

from harvester.catalog import ignored_runs, page_products, sources
from harvester.catalog.models import Source
from harvester.catalog.offers import differences
from harvester.kernel.errors import Conflict
from harvester.pipeline.baseline import read_baseline
from harvester.pipeline.observations import promote_observations
from harvester.runs.models import Run

STEPS = 25
PRODUCTS = [f"S-{number}" for number in range(1000, 1024)]
#: They have a page, linked to the product of the feed.
LINKED = PRODUCTS[:5]
#: Only their pages show them, and sometimes the feed has the first of them.
PAGE_ONLY = ["X-1", "X-2", "X-3"]
#: Hours that pass. No few of them add up to 48 or 168.
WAITS = (5.37, 13.71, 29.53)
EXPIRY, LEAD, MOST_HOLD = 48, 48, 168
#: Hours by which a step is later than the one before it.
TICK = 1e-6


@dataclass
class Known:
    """What the model knows of a product."""

    feed: list = field(default_factory=list)
    #: Price, when, run; those of ignored runs are in `ignored`.
    page: list = field(default_factory=list)
    seen_at: float | None = None
    lead: float | None = None
    ended: float | None = None
    #: Presence by the feed: None while its last run had the product.
    missing: float | None = None
    #: Presence by pages; a hold of the feed stops its clock too.
    shown_until: float | None = None


class Model:
    """The rules. Times are hours of the story."""

    def __init__(self):
        self.now = 0.0
        self.is_eligible = True
        self.products = {key: Known() for key in (*PRODUCTS, *PAGE_ONLY)}
        self.promoted_at = None
        self.frozen, self.held_since, self.held = 0.0, None, None
        self.ignored = set()

    @property
    def lost(self):
        return min(self.frozen + (self.now - self.held_since if self.held else 0), MOST_HOLD)

    def pages_of(self, known):
        return [each for each in known.page if each[2] not in self.ignored]

    def promote(self, prices):
        """A run of the feed with these prices is promoted, or was approved."""
        lost = self.lost
        for key, known in self.products.items():
            if key in prices:
                known.feed.append(prices[key])
                known.missing = None
            elif known.feed:
                known.missing = self.promoted_at + lost if known.missing is None else known.missing + lost
            elif known.shown_until is not None:
                known.shown_until = max(min(known.shown_until + lost, self.now), known.shown_until)
        self.promoted_at, self.frozen, self.held, self.held_since = self.now, 0.0, None, None
        self.end_leads()

    def end_leads(self):
        for known in self.products.values():
            if known.lead is not None and known.lead <= self.now:
                known.lead = None

    def hold(self, prices):
        self.held, self.held_since = prices, self.now if self.held_since is None else self.held_since

    def release(self):
        """The held run is rejected."""
        self.frozen += self.now - self.held_since
        self.held = self.held_since = None

    def see(self, key, price, at, run):
        """A page was read well; without a price it was not modified. Return whether it counts."""
        known = self.products[key]
        last_run = max((each[2] for each in known.page), default=0)
        if price is not None and known.seen_at is not None and (at, run) <= (known.seen_at, last_run):
            return False
        known.seen_at = at
        if at + LEAD > self.now:
            known.lead = max(known.lead or 0, at + LEAD)
        if known.ended is not None and known.ended <= at:
            known.ended = None
        if self.is_eligible:
            known.shown_until = max(known.shown_until or 0, at)
        if price is not None:
            pages = self.pages_of(known)
            if not pages or pages[-1][0] != price:
                known.page.append((price, at, run))
        return True

    def end(self, key):
        known = self.products[key]
        if known.seen_at is not None:
            known.ended = self.now if known.ended is None else known.ended

    def switch(self):
        self.is_eligible = not self.is_eligible
        self.end_leads()
        for known in self.products.values():
            known.shown_until = known.seen_at if self.is_eligible else None

    def ignore(self, run):
        self.ignored.add(run)
        for known in self.priced_by(run):
            known.lead = None

    def undo_ignore(self, run):
        """Return whether it is allowed."""
        for known in self.priced_by(run):
            [at] = [at for _, at, by in known.page if by == run]
            is_newer = any(by > run and by not in self.ignored for _, _, by in known.page)
            if known.seen_at > at and not is_newer:
                return False
        self.ignored.discard(run)
        for known in self.priced_by(run):
            if known.seen_at + LEAD > self.now:
                known.lead = known.seen_at + LEAD
        return True

    def priced_by(self, run):
        return [known for known in self.products.values() if any(by == run for _, _, by in known.page)]

    def shown(self):
        return {key: price for key, known in self.products.items() if (price := self.price(known)) is not None}

    def price(self, known):
        """What consumers see of a product, if anything."""
        pages = self.pages_of(known) if self.is_eligible else []
        since = self.now - self.lost - EXPIRY
        if known.feed:
            if (self.promoted_at if known.missing is None else known.missing) < since:
                return None
            return pages[-1][0] if pages and known.lead is not None else known.feed[-1]
        if not pages or known.ended is not None or known.shown_until < since:
            return None
        return pages[-1][0]


class Story:
    def __init__(self, world, seed):
        self.world, self.model, self.random = world, Model(), random.Random(seed)
        self.prices = {key: 10.0 + place / 100 for place, key in enumerate(PRODUCTS)}
        self.steps = []

    def begin(self):
        self.run_feed()
        self.run_pages()

    def step(self):
        self.model.now += TICK
        ways = [self.run_feed] * 3 + [self.run_pages] * 5 + [self.wait] * 4
        ways += [self.hold, self.switch, self.switch, self.skip, self.ignore_pages, self.ignore_feed_and_undo]
        if self.model.held:
            ways += [self.approve, self.approve, self.reject]
        self.random.choice(ways)()

    def wait(self):
        hours = self.random.choice(WAITS)
        self.world.pass_time(hours)
        self.model.now += hours
        self.steps.append(f"{hours} h")

    def run_feed(self):
        """Some prices change a little, and one product is missing, which no gate holds."""
        for key in self.random.sample(PRODUCTS, 5):
            self.prices[key] = round(self.prices[key] * self.random.choice((0.9, 1.1)), 2)
        if self.random.random() < 0.2:
            self.prices["X-1"] = 8.0
        absent = self.random.choice([None, *PRODUCTS, "X-1"]) if self.steps else None
        prices = {key: price for key, price in self.prices.items() if key != absent}
        assert self._read_feed(prices) == "PROMOTED", self.story
        self.model.promote(prices)

    def skip(self):
        """The same file again, which counts as seen."""
        run = self.world.run()
        if run.outcome != "SKIPPED":  # the file of a rejected or ignored run, or one that was promoted
            pytest.fail(f"{run.outcome}: {self.story}")
        if self.last_read == "PROMOTED" and run.outcome == "SKIPPED" and not self.model.held:
            self.model.promoted_at = self.model.now
            self.model.end_leads()
        self.steps.append("feed: SKIPPED")

    def hold(self):
        """All prices double."""
        prices = {key: round(price * 2, 2) for key, price in self.prices.items()}
        assert self._read_feed(prices) == "HELD", self.story
        self.model.hold(prices)

    def approve(self):
        held = Run.objects.get(source_id=self.world.source.pk, outcome="HELD")
        assert self.world.approve(held).state == "succeeded"
        self.prices = dict(self.model.held)
        self.model.promote(self.prices)
        self.last_read = "PROMOTED"
        self.steps.append("approved")

    def reject(self):
        self.world.reject(Run.objects.get(source_id=self.world.source.pk, outcome="HELD"))
        self.model.release()
        self.steps.append("rejected")

    def switch(self):
        self.model.switch()
        sources.update(OLGA, self.world.source.pk, visibility="ELIGIBLE" if self.model.is_eligible else "INELIGIBLE")
        self.steps.append(f"eligible: {self.model.is_eligible}")

    def run_pages(self):
        """Each page is read well, or is unchanged, sold out, gone, failed, or was read earlier than the last one."""
        run = page_run(self.world.source)
        story, observations, expected = [], [], []
        with transaction.atomic(), connection.cursor() as cursor:
            baseline = read_baseline(cursor, self.world.source.pk, lock=True)
            for key in (*LINKED, *PAGE_ONLY):
                known = self.model.products[key]
                what = self.random.choice(["price"] * 4 + ["unchanged"] * 2 + ["ended", "failed", "late", "again"])
                if known.seen_at is None and what != "failed":
                    what = "price"
                story.append(f"{key} {what}")
                if what in ("price", "late", "again"):
                    price = self.random.choice((5.0, 6.0, 7.0))
                    at = {"price": self.model.now, "late": (known.seen_at or 0) - 0.5, "again": known.seen_at}[what]
                    observations.append(observation(key, price, self._moment(at, key, what, baseline)))
                    expected.append(self.model.see(key, price, at, run.no))
                elif what == "unchanged":
                    page_products.confirm_observed(cursor, self.world.source.pk, [product_of(key)], baseline.moment)
                    self.model.see(key, None, self.model.now, None)
                elif what == "ended":
                    page_products.end_presence(cursor, self.world.source.pk, [product_of(key)], baseline.moment)
                    self.model.end(key)
            promoted = promote_observations(cursor, baseline, observations, run_no=run.no, run_type="SCRAPE")
        self.steps.append(f"pages {run.no}: {', '.join(story)}")
        assert promoted.superseded == [place for place, counts in enumerate(expected) if not counts], self.story

    def ignore_pages(self):
        done = {by for known in self.model.products.values() for _, _, by in known.page}
        if not done:
            return
        run = self.random.choice(sorted(done))
        self.steps.append(f"ignored or not: {run}")
        if run not in self.model.ignored:
            self.model.ignore(run)
            ignored_runs.ignore_run(OLGA, Run.objects.get(no=run).pk, "wrong")
        elif self.model.undo_ignore(run):
            ignored_runs.undo_ignore(OLGA, Run.objects.get(no=run).pk)
        else:
            with pytest.raises(Conflict):
                ignored_runs.undo_ignore(OLGA, Run.objects.get(no=run).pk)

    def ignore_feed_and_undo(self):
        """Everything is as before, and in between the offers are those of what is left."""
        run = Run.objects.get(no=self.world.look().last_promoted_run_no)
        ignored_runs.ignore_run(OLGA, run.pk, "wrong")
        assert differences() == [], self.story
        ignored_runs.undo_ignore(OLGA, run.pk)
        self.steps.append(f"ignored run {run.no} and undid it")

    def _moment(self, at, key, what, baseline):
        """A time of the story by the database's clock."""
        if what == "price":
            return baseline.moment
        [(seen_at,)] = rows("SELECT seen_at FROM page_products WHERE product_id = %s", product_of(key))
        return seen_at - timedelta(hours=0.5) if what == "late" else seen_at

    def _read_feed(self, prices):
        # No two files are the same, so none is skipped.
        nonce = self.random.randrange(10**9)
        lines = [row(0, SKU=key, Name=f"{key} {nonce if key == PRODUCTS[-1] else ''}", Url=f"https://shop.example/{key}",
                     Price=f"{price:.2f}") for key, price in prices.items()]  # fmt: skip
        self.world.put(*lines)
        self.last_read = self.world.run().outcome
        self.steps.append(f"feed: {self.last_read}")
        return self.last_read

    @property
    def story(self):
        return "; ".join(self.steps)

    def check(self):
        shown, expected = {key: price for key, (_, price, _) in self.world.shown().items()}, self.model.shown()
        assert {key: price for key, price in shown.items() if expected.get(key) != price} == {}, self.story
        assert expected.keys() - shown.keys() == set(), self.story
        assert differences() == [], self.story
        self.world.check()


def observation(key, price, at):
    return observed(key, f"{price:.2f}", at=at, link=product_of(key) if key in LINKED else None)


@pytest.mark.parametrize("seed", seeds(1, 6))
def test_random_stories_of_a_feed_and_pages_are_those_of_the_model(database, settings, tmp_path, seed):
    allow_loopback(settings)
    with SftpServer(tmp_path) as server:
        world = World(server)
        world.change(unchanged_means_seen=True)
        # Prices that are only confirmed would make the story depend on ids.
        Source.objects.update(price_heartbeat_hours=720, visibility="ELIGIBLE")
        story = Story(world, seed)
        story.begin()
        story.check()
        for _ in range(STEPS):
            story.step()
            story.check()
