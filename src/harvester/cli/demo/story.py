"""Puts the jobs in, kills a worker in the middle, and waits until every act has come out. Needs Django."""

import signal
import time
from collections.abc import Callable

from harvester.cli.actor import operator
from harvester.cli.demo.acts import Act, all_acts
from harvester.cli.signals import StopRequest
from harvester.cli.supervise import Child, Supervisor
from harvester.engine.models import Job
from harvester.engine.states import OPEN, JobState
from harvester.kernel.errors import TerminalError
from harvester.ops import jobs

LOOK_SECONDS = 0.1
#: Seconds for the whole story; on two busy cores it takes about eight.
PATIENCE_SECONDS = 90.0

#: Hears a sentence, and whether it is as it should be.
Tell = Callable[[str, bool], None]


class Story:
    """The acts, and the hand that interferes with two of them."""

    def __init__(self, supervisor: Supervisor, doomed: Child, stop: StopRequest) -> None:
        self.acts = all_acts()
        self._supervisor = supervisor
        self._doomed = doomed
        self._stop = stop
        self.killed = False
        self._cancelled = False

    def play(self, tell: Tell, look: Callable[[], None]) -> list[Act]:
        """Until every act is over; `tell` hears what happens, `look` is called at each look."""
        waiting = dict(self.acts)
        deadline = time.monotonic() + PATIENCE_SECONDS
        while waiting:
            for name in [name for name, act in waiting.items() if act.look()]:
                act = waiting.pop(name)
                tell(f"a job that {act.title}: {act.shows}", act.came_out)
            look()
            self._interfere(tell)
            self._supervisor.look_after()
            self._stop.wait(LOOK_SECONDS)
            if self._stop.asked:
                raise KeyboardInterrupt
            if time.monotonic() > deadline:
                break
        self._judge()
        return list(self.acts.values())

    def _interfere(self, tell: Tell) -> None:
        if not self.killed and _runs(self.acts["killed"]):
            self.killed = True
            tell(f"kill -9 {self._doomed.pid}, the worker that runs job {self.acts['killed'].job_ids[0]}", True)
            self._doomed.send(signal.SIGKILL)
        if not self._cancelled and _runs(self.acts["cancelled"]):
            self._cancelled = True
            jobs.cancel(operator(), self.acts["cancelled"].job_ids[0])

    def _judge(self) -> None:
        """A demo that only seems to work is worse than one that fails."""
        wrong = [act for act in self.acts.values() if not act.came_out]
        if wrong:
            told = "; ".join(f"a job that {act.title}: {', '.join(job['state'] for job in act.jobs)}" for act in wrong)
            raise TerminalError(f"The story did not come out ({told}). {self._doomed.log_file} says more.")


def cancel_leftovers() -> None:
    """Jobs of a demo that was broken off would take the slots of this one."""
    left = Job.objects.filter(kind__startswith="demo.", state__in=OPEN).exclude(kind="demo.nightly_report")
    for job_id in left.values_list("id", flat=True):
        jobs.cancel(operator(), job_id)


def _runs(act: Act) -> bool:
    return bool(act.jobs) and act.jobs[0]["state"] == JobState.RUNNING
