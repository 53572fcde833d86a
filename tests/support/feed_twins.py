"""Two feeds that read the same files: one in peace, the other one disturbed. In the end they must look the same."""

from dataclasses import dataclass, field

from harvester.engine.models import Job
from harvester.runs.decisions import request_approval
from harvester.runs.models import Run
from tests.support import feed_oracle
from tests.support.feed_world import OLGA, World
from tests.support.feeds import HEADER, feed, row
from tests.support.jobs import change
from tests.support.outcomes import ENDED, backend_lives, take_from_its_worker
from tests.support.sftp_server import SftpServer
from tests.support.waiting import wait_for
from tests.support.workers import run_until_idle

PRODUCTS = range(100, 140)


@dataclass
class Twins:
    """A feed in peace, a feed that is disturbed, and their partner."""

    server: SftpServer
    peaceful: World = field(init=False)
    disturbed: World = field(init=False)
    edition: int = 0

    def begin_again(self) -> None:
        """Both have had two runs: products are there, and others are missing."""
        self.make()
        for _ in range(2):
            self.publish()
            self.run_both()
        self.must_be_alike()

    def run_both(self) -> list[str | None]:
        """Both read the edition at once, in peace; how they end."""
        jobs = [world.ask() for world in (self.peaceful, self.disturbed)]
        run_until_idle()
        return [run.outcome for run in Run.objects.filter(job_id__in=jobs)]

    def make(self) -> None:
        self.edition = 0
        self.peaceful = World(self.server, "Peaceful")
        self.disturbed = World(self.server, "Disturbed")

    def publish(self, *, padding: str = "", compressed: bool = False) -> None:
        """The next edition: new, changed, more expensive, missing and returning products, within what the gates allow.

        `padding` makes the file so much longer for each product.
        """
        self.edition += 1
        number = PRODUCTS[self.edition % len(PRODUCTS)]
        gone = {number, number + 1} if self.edition > 1 else set()
        kept = [row(item, **self._news(item)) for item in PRODUCTS if item not in gone]
        fresh = [row(2000 + edition) for edition in range(self.edition + 1)]
        padded = [[*cells, padding] for cells in [*kept, *fresh]]
        self.peaceful.put_bytes(feed(*padded, header=[*HEADER, "Notes"]).encode(), compressed=compressed)

    def publish_much(self, *, compressed: bool) -> None:
        """An edition whose rows take much room in a table of columns, and little when they are compressed."""
        self.edition += 1
        many = [
            row(item, Name=f"Thing {item} of {self.edition} {'x' * 100}") for item in [*PRODUCTS, *range(5000, 6500)]
        ]
        self.peaceful.put(*many, compressed=compressed)

    def publish_little(self) -> None:
        """An edition that a gate holds: hardly anything is left."""
        self.edition += 1
        few = [row(item, **self._news(item)) for item in PRODUCTS[:4]]
        self.peaceful.put(*few, row(2000 + self.edition), row(3000 + self.edition))

    def _news(self, item: int) -> dict[str, str]:
        """Every seventh product has another name in each edition, and another seventh another price."""
        news = [{"Name": f"Thing {item} of {self.edition}"}, {"Price": f"1.{self.edition % 30:02}"}]
        turn = (item + self.edition) % 7
        return news[turn] if turn < len(news) else {}

    def hold(self) -> None:
        """Both have a run that waits for a decision."""
        for publish in (self.publish, self.publish_little):
            publish()
            ends = self.run_both()
        assert ends == ["HELD", "HELD"]

    def differences(self) -> list[str]:
        """Compare only what has come to rest: a run leaves links and messages to follow-up jobs."""
        self.let_others_end()
        return feed_oracle.differences(self.peaceful, self.disturbed)

    def let_others_end(self) -> None:
        """What a run leaves to others, such as links to products and messages to people; a retry need not wait."""
        for _ in range(5):
            waiting = Job.objects.exclude(state__in=ENDED).values_list("id", flat=True)
            if not waiting:
                return
            for job in waiting:
                change(job, "run_at = now()")
            run_until_idle()

    def must_be_alike(self) -> None:
        """The disturbed feed has come to the same end, and nothing of its way is left."""
        assert not Run.objects.filter(status="RUNNING").exists()
        assert not Job.objects.filter(kind__startswith="feeds.").exclude(state__in=ENDED).exists()
        different = self.differences()
        assert not different, "\n".join(different)


def ask_to_approve(world: World) -> int:
    """Olga approves what is held; answers the job, which nobody has run yet."""
    held = Run.objects.get(source_id=world.source.pk, outcome="HELD")
    return request_approval(OLGA, held.id).job_id


def take_over(job_id: int, backend: int) -> None:
    """What the rescuer does about a worker that is dead, without waiting until it counts as dead."""
    wait_for(lambda: not backend_lives(backend), "the end of the dead worker's session")
    if Job.objects.get(pk=job_id).state == "running":
        take_from_its_worker(job_id)
