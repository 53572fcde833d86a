"""The jobs of feeds: names, queues, retries and schedules. Their code is imported when one of them runs."""

from typing import Final

from harvester.engine.registry import Later, job_kind, periodic
from harvester.kernel.retry import RetryPolicy
from harvester.ops.jobs import Hooks, add_hooks

RUN: Final = "feeds.run"
TEST: Final = "feeds.test"
FORGET_TESTS: Final = "feeds.forget_tests"
TICK: Final = "feeds.tick"
WATCH: Final = "feeds.watch_clocks"
NOTE_DAYS: Final = "feeds.note_days"
CLEAN_UP: Final = "feeds.clean_up"
#: The queue of runs. Jobs that must not wait for runs are urgent: they go first and have a slot that runs cannot take.
QUEUE: Final = "feeds"
#: Of runs.
RETRY: Final = RetryPolicy(base=5.0, factor=3.0, attempts=3)  # mutant: feed-retries


def register() -> None:
    job_kind(RUN, queue=QUEUE, retry=RETRY, own_alerts=True)(Later("harvester.feeds.runs:run_feed"))
    start_again = Later("harvester.feeds.verbs.lifecycle:start_again")
    add_hooks(RUN, Hooks(start_again=start_again, cancelled=Later("harvester.feeds.verbs.lifecycle:cancel_waiting")))
    job_kind(TEST, queue=QUEUE, retry=RetryPolicy(attempts=1))(Later("harvester.feeds.feed_test:test_feed"))
    job_kind(TICK, queue="maintenance", urgent=True)(Later("harvester.feeds.schedule:tick"))
    periodic("feeds that are due", kind=TICK, cron="* * * * *")
    job_kind(WATCH, queue="maintenance", timeout=300.0)(Later("harvester.feeds.attention:watch_clocks"))
    periodic("clocks of feeds", kind=WATCH, cron="*/10 * * * *")
    job_kind(FORGET_TESTS, queue="maintenance")(Later("harvester.feeds.feed_test:forget_tests"))
    periodic("old results of test runs", kind=FORGET_TESTS, cron="23 * * * *")
    job_kind(NOTE_DAYS, queue="maintenance", timeout=300.0)(Later("harvester.feeds.figures:note_days"))
    periodic("figures of days", kind=NOTE_DAYS, cron="3 * * * *")
    patient = RetryPolicy(base=300.0, factor=3.0, attempts=3)
    job_kind(CLEAN_UP, queue="maintenance", retry=patient)(Later("harvester.feeds.schedule:clean_up"))
    periodic("daily clean-up of feeds", kind=CLEAN_UP, cron="47 3 * * *")
