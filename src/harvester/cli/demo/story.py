"""Plays the acts one after the other through real workers, one of which is killed on the way. Needs Django."""

import signal
import time
from collections.abc import Callable, Mapping, Sequence

from harvester.cli.actor import operator
from harvester.cli.demo.acts import ACTS, Act, Played, look_back, problems, shown
from harvester.cli.demo.catalog import FIRST, HARBOUR
from harvester.cli.demo.partner import Partner
from harvester.cli.signals import StopRequest
from harvester.cli.supervisor import Child, Supervisor
from harvester.engine.models import Job
from harvester.engine.states import ENDED, OPEN
from harvester.feeds import verbs
from harvester.feeds.jobs import RUN
from harvester.feeds.models import Feed
from harvester.kernel.errors import TerminalError
from harvester.ops import jobs

LOOK_SECONDS = 0.05
#: Seconds for any one thing to happen; on two busy cores the longest, the rescue, takes about five.
PATIENCE_SECONDS = 90.0


class Story:
    """The shops' feeds, their partner, and the processes that do the work.

    Attributes:
        feeds: what is run, by the shops' names.
        partner: where the files lie.
        workers: the children that run jobs, by the names under which they claim them.
        tell: hears each sentence.
        advice: what to do if it does not come out.
    """

    def __init__(
        self,
        feeds: Mapping[str, Feed],
        partner: Partner,
        workers: Sequence[Child],
        *,
        supervisor: Supervisor,
        stop: StopRequest,
        tell: Callable[[str], None],
        advice: str,
    ) -> None:
        self.feeds = feeds
        self.partner = partner
        self.workers = {child.name: child for child in workers}
        self.tell = tell
        self._supervisor = supervisor
        self._stop = stop
        self._advice = advice

    def play(self, after_each: Callable[[Played], None]) -> list[Played]:
        """All acts; the first that does not come out ends the story."""
        self._wait(_no_job_is_open, "the jobs of an earlier demo end")
        played = []
        for act in ACTS:
            one = self._play(act)
            wrong = list(problems(one))
            if wrong:
                told = f"Run {one.run.no} ({act.title}): {'; '.join(wrong)}."
                raise TerminalError(f"The story did not come out. {told} {self._advice}")
            after_each(one)
            played.append(one)
        return played

    def _play(self, act: Act) -> Played:
        feed = self.feeds[act.shop.name]
        before = shown(feed)
        self.partner.put(act.shop.path, act.edition.file())
        if act.worker_dies:
            self.partner.stall()
        try:
            # An earlier demo may have ended with the very file that this one begins with.
            job = verbs.run_now(operator(), feed.id, force=act.edition in (FIRST, HARBOUR)).job_id
            if act.worker_dies:
                self._kill_whoever_runs(job)
        finally:
            self.partner.go_on()
        self._wait(lambda: _state(job) in ENDED, f"the run ends ({act.title})")
        return look_back(act, feed, job, before)

    def _kill_whoever_runs(self, job_id: int) -> None:
        reads = self.partner.has_reader.is_set
        self._wait(lambda: reads() or _state(job_id) in ENDED, "a worker reads the partner's file")
        if not reads():
            return
        child = self.workers[str(Job.objects.values_list("worker", flat=True).get(id=job_id))]
        self.tell(f"kill -9 {child.pid}: {child.name} dies in the middle of the next download")
        child.send(signal.SIGKILL)

    def _wait(self, happened: Callable[[], bool], what: str) -> None:
        deadline = time.monotonic() + PATIENCE_SECONDS
        while not happened():
            self._supervisor.look_after()
            self._stop.wait(LOOK_SECONDS)
            if self._stop.asked:
                raise KeyboardInterrupt
            if time.monotonic() > deadline:
                raise TerminalError(f"The story stopped: waited {PATIENCE_SECONDS:.0f} s until {what}. {self._advice}")


def cancel_leftovers() -> None:
    """A run of a demo that was broken off would come between the runs of this one."""
    for job_id in Job.objects.filter(kind=RUN, state__in=OPEN).values_list("id", flat=True):
        jobs.cancel(operator(), job_id)


def _no_job_is_open() -> bool:
    return not Job.objects.filter(kind__startswith="feeds.", queue__in=("feeds", "decisions"), state__in=OPEN).exists()


def _state(job_id: int) -> str:
    return str(Job.objects.values_list("state", flat=True).get(id=job_id))
