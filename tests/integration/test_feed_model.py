"""Random stories of a feed, compared with a model in Python: what consumers see is the same after every step."""

import random

import pytest
from tests.support.feed_model import Model
from tests.support.feed_world import OLGA, OPEN, CallsBack, World, allow_loopback
from tests.support.feeds import row
from tests.support.generated import seeds
from tests.support.sftp_server import SftpServer
from tests.support.tables import rows

from harvester.catalog import corrections
from harvester.catalog.models import Source
from harvester.catalog.offers import differences
from harvester.engine.models import Job
from harvester.feeds import decisions, verbs
from harvester.feeds.models import Feed
from harvester.kernel.errors import Conflict
from harvester.runs.models import Run

STEPS = 25
PRODUCTS = range(1000, 1040)
#: Hours that never add up to an expiry or a deadline.
WAITS = (1.13, 7.29, 19.57, 41.31)


@pytest.fixture
def world(database, settings, tmp_path):
    allow_loopback(settings)
    with SftpServer(tmp_path, behaviour=CallsBack) as server:
        made = World(server)
        # Prices that are only confirmed would make the story depend on ids.
        Source.objects.update(price_heartbeat_hours=720)
        yield made


class Story:
    def __init__(self, world, seed):
        self.world, self.model, self.random = world, Model(), random.Random(seed)
        self.catalog = {number: (f"Thing {number}", number / 100) for number in PRODUCTS}
        self.steps = []
        self.made = []

    def step(self):
        ways = [self.run] * 5 + [self.wait] * 3 + [self.click_and_pause, self.be_disabled]
        if self.model.held:
            ways += [self.approve, self.reject] * 2
        if self.model.promoted:
            ways += [self.ignore, self.undo, self.correct, self.correct]
        if self.made:
            ways += [self.revoke]
        self.random.choice(ways)()

    def run(self):
        self._change_catalog()
        self.world.put(*(row(n, Name=title, Price=f"{price:.2f}") for n, (title, price) in self.catalog.items()))
        run = self.world.run()
        number = run.no
        expected = self.model.run(number, {f"S-{n}": value for n, value in self.catalog.items()})
        self.steps.append(f"run {number} of {len(self.catalog)}: {run.outcome}")
        assert run.outcome == expected, self.steps

    def _change_catalog(self):
        chance = self.random
        size = chance.choice((40, 38, 33, 20, 8, 1))
        # Often the same products as before, so that what is missing stays missing until it expires.
        kept = sorted(self.catalog) if chance.random() < 0.5 else chance.sample(PRODUCTS, size)
        factor = chance.choice((1, 1, 1, 1.3, 3))
        nonce = chance.randrange(10**9)
        self.catalog = {n: (f"Thing {n}", round(n / 100 * factor, 2)) for n in kept}
        # No two files are the same, so none is skipped.
        self.catalog[kept[0]] = (f"Thing {kept[0]} {nonce}", self.catalog[kept[0]][1])

    def wait(self):
        hours = self.random.choice(WAITS)
        self.model.now += hours
        self.world.pass_time(hours)
        self.steps.append(f"{hours} hours")

    def click_and_pause(self):
        """Somebody asks for a run and pauses the feed before the job comes, or after."""
        feed = self.world.feed.id
        job = verbs.run_now(OLGA, feed).job_id
        verbs.pause(OLGA, feed)
        if self.random.random() < 0.5:
            self.world.work(job)
        verbs.resume(OLGA, feed)
        self.world.work(job)
        self.steps.append("clicked, paused and resumed")

    def be_disabled(self):
        """A file that cannot be read disables the feed, while somebody asks for a run."""
        self.world.put_bytes(b"colour\tsize\nred\t5\n")
        self.world.meanwhile(lambda: verbs.run_now(OLGA, self.world.feed.id))
        Feed.objects.update(consecutive_failures=2)
        assert self.world.run().status == "FAILED"
        self.check_request()
        verbs.re_enable(OLGA, self.world.feed.id, acknowledged=True)
        self.world.hurry()
        self.steps.append("disabled and enabled again")

    def approve(self):
        self.world.approve(self._held())
        self.model.approve()
        self.steps.append("approved")

    def reject(self):
        self.world.reject(self._held())
        self.model.reject()
        self.steps.append("rejected")

    def ignore(self):
        number = self.random.choice(self.model.promoted[-2:])
        if number not in self.model.ignored and not self.model.held:
            decisions.ignore(OLGA, Run.objects.get(no=number).id, "it was wrong")
            self.model.ignore(number)
            self.steps.append(f"ignored {number}")

    def undo(self):
        for number in sorted(self.model.ignored) if not self.model.held else ():
            run = Run.objects.get(no=number)
            if self.model.may_undo(number):
                decisions.undo_ignore(OLGA, run.id)
                self.model.undo(number)
                self.steps.append(f"undone {number}")
            else:
                with pytest.raises(Conflict):
                    decisions.undo_ignore(OLGA, run.id)

    def correct(self):
        shown = sorted(self.model.shown())
        if shown:
            key = self.random.choice(shown)
            [(product,)] = rows("SELECT id FROM source_products WHERE identity_value = %s", key)
            made = corrections.create(
                OLGA, scope="PRODUCT", source_id=self.world.source.pk, product_id=product, action="MULTIPLIER",
                multiplier=2, reason="half",
            )  # fmt: skip
            self.model.correct(key, 2)
            self.made.append((made.pk, self.model.corrections[-1]))
            self.steps.append(f"corrected {key}")

    def revoke(self):
        made, correction = self.made.pop(self.random.randrange(len(self.made)))
        corrections.revoke(OLGA, made)
        self.model.corrections.remove(correction)
        self.steps.append(f"revoked the correction of {correction.key}")

    def _held(self):
        return Run.objects.get(no=self.model.held.run)

    def check(self):
        if self.model.edge() > 0.05:
            seen = {key: (title, price) for key, (title, price, _) in self.world.shown().items()}
            assert seen == self.model.shown(), self.steps
        assert differences() == [], self.steps
        self.check_request()

    def check_request(self):
        """Somebody who asked for a run waits only while there is a job that will run the feed."""
        feed = Feed.objects.get()
        coming = Job.objects.filter(kind="feeds.run", state__in=OPEN).exists() and feed.status == "ENABLED"
        assert feed.manual_run_requested_at is None or coming, self.steps


@pytest.mark.parametrize("seed", seeds(1, 4))
def test_consumers_see_what_the_rules_say(world, seed):
    story = Story(world, seed)
    story.run()
    for _ in range(STEPS):
        story.step()
        story.check()
