"""One whole run."""

import shutil
import sys
import tempfile
from pathlib import Path

from tests.support.chaos.feeder import Feeder
from tests.support.chaos.kinds import make_tables
from tests.support.chaos.storm import Storm
from tests.support.chaos.verdict import deadlocks, figures, violations
from tests.support.outcomes import wait_until_all_ended
from tests.support.own_cluster import OwnCluster

#: Only ends a run in which something hangs.
DRAIN_SECONDS = 180.0


def run(cluster: OwnCluster, *, seed: int, seconds: float, jobs: int) -> list[str]:
    """Let it storm, wait until everything has drained, print the figures; answers what is wrong."""
    show(f"chaos: seed {seed}, {jobs} jobs, {seconds:g} s")
    make_tables()
    logs = Path(tempfile.mkdtemp(prefix="harvester-chaos-"))
    feeder = Feeder(seed, jobs, seconds)
    storm = Storm(cluster, seed, logs)
    try:
        wrong = _storm_and_drain(storm, feeder, seconds)
        wrong += [*violations(feeder.acknowledged), *deadlocks(cluster.home / "postgres.log")]
        _print_table({**storm.counts, **figures(logs), "jobs acknowledged": len(feeder.acknowledged)})
    finally:
        storm.clear_away()
        feeder.give_up()
        shutil.rmtree(logs)
    return wrong


def _storm_and_drain(storm: Storm, feeder: Feeder, seconds: float) -> list[str]:
    feeder.start()
    storm.rage(seconds)
    storm.calm_down()
    feeder.join()
    try:
        wait_until_all_ended(DRAIN_SECONDS)
    except AssertionError as problem:
        return [str(problem)]
    storm.end()
    return storm.unexplained


def _print_table(counts: dict[str, int]) -> None:
    for name, count in counts.items():
        show(f"  {name:<45}{count:>8}")


def show(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()
