"""Parts of runs when things go wrong: lost and cancelled jobs, retries by hand, code that fails, old days."""

from datetime import timedelta

import pytest
from django.db import connection, connections, transaction
from tests.support import catalog
from tests.support.jobs import change, state
from tests.support.page_runs import (
    begin,
    end,
    figures,
    offer,
    open_alerts,
    outcomes,
    prices,
    shop,
    state_of,
    targets,
)
from tests.support.tables import rows
from tests.support.workers import run_until_idle

from harvester.engine.enqueue import enqueue
from harvester.engine.models import Job
from harvester.kernel.actor import Actor
from harvester.kernel.errors import Conflict
from harvester.ops import jobs, retention
from harvester.runs import parts
from harvester.runs.jobs import CLOSE_ORPHANS, PART_DAYS
from harvester.runs.models import Run, RunPart
from harvester.runs.states import RunTrigger
from harvester.scraping.runs import SCRAPE_RUNS, ScrapeRuns

pytestmark = pytest.mark.usefixtures("database")
OLGA = Actor(kind="person", id="olga", name="Olga")


def upkeep(kind: str) -> None:
    made = enqueue(kind)
    run_until_idle(queues=("maintenance",))
    assert state(made.job_id) == "succeeded"


def lose(part: RunPart, how: str = "failed", error: str = "WORKER_LOST") -> None:
    change(part.job_id, f"state = '{how}', finished_at = now(), error_type = '{error}', error = 'gone'")


def test_the_rescuer_may_end_the_last_part_and_with_it_the_run():
    source = shop(2)
    first, second = begin(source)
    end(first, found=offer("10.00", sku="A"))
    lose(second)
    assert prices(source) == []
    upkeep(CLOSE_ORPHANS)
    run = Run.objects.get()
    assert (run.status, run.outcome, outcomes(run)) == ("SUCCEEDED", "PROMOTED", ["OFFER", "FAILED"])
    assert prices(source) == [10.00]
    detail = RunPart.objects.get(pk=second.pk).detail
    assert detail == {"code": "WORKER_LOST", "error": "gone"}


def test_a_run_whose_jobs_were_deleted_is_ended_too():
    source = shop(2)
    begin(source)
    Job.objects.filter(kind="scraping.page").delete()
    upkeep(CLOSE_ORPHANS)
    assert (Run.objects.get().status, outcomes(Run.objects.get())) == ("SUCCEEDED", ["FAILED"] * 2)


def test_many_parts_without_a_job_are_ended_a_few_at_a_time(monkeypatch):
    monkeypatch.setattr(parts, "MOST_ORPHANS", 2)
    begin(shop(5))
    Job.objects.filter(kind="scraping.page").delete()
    with transaction.atomic():
        assert parts.close_orphans() == 2, "the lock of the source is free again soon"
    assert RunPart.objects.filter(outcome=None).count() == 3
    upkeep(CLOSE_ORPHANS)
    assert (Run.objects.get().status, outcomes(Run.objects.get())) == ("SUCCEEDED", ["FAILED"] * 5)


def test_a_run_without_an_open_part_is_ended():
    source = shop(1)
    [part] = begin(source)
    RunPart.objects.filter(pk=part.pk).delete()
    upkeep(CLOSE_ORPHANS)
    assert (Run.objects.get().status, Run.objects.get().outcome) == ("SUCCEEDED", "EMPTY")


def test_a_part_whose_waiting_job_is_cancelled_ends_at_once():
    source = shop(2)
    first, second = begin(source)
    jobs.cancel(OLGA, first.job_id)
    assert outcomes(Run.objects.get()) == ["CANCELLED", None]
    jobs.cancel(OLGA, second.job_id)
    assert (Run.objects.get().status, Run.objects.get().outcome) == ("SUCCEEDED", "EMPTY")


@pytest.mark.parametrize("is_closed", [True, False], ids=["run ended", "not noticed yet"])
def test_a_retry_by_hand_is_a_run_of_its_own(is_closed):
    source = shop(1)
    [part] = begin(source)
    lose(part, error="SHOP_BUSY")
    if is_closed:
        upkeep(CLOSE_ORPHANS)
    again = jobs.retry(OLGA, part.job_id)
    old, new = Run.objects.order_by("no")
    assert (old.status, new.status, new.trigger) == ("SUCCEEDED", "RUNNING", "RETRY")
    assert (figures(new).requested_by, figures(new).adapter_id) == ("Olga", "structured")
    [made] = RunPart.objects.filter(run=new)
    assert (made.job_id, made.target_id, made.page) == (again, part.target_id, None)
    end(made, found=offer("10.00", sku="A"))
    assert (prices(source), outcomes(old)) == ([10.00], ["FAILED"])


def test_a_retry_of_what_was_fetched_has_its_page():
    source = shop(1)
    [part] = begin(source)
    at = catalog.now()
    RunPart.objects.filter(pk=part.pk).update(page="f" * 64, observed_at=at)
    lose(part)
    jobs.retry(OLGA, part.job_id)
    made = RunPart.objects.get(run=Run.objects.latest("no"))
    assert (made.page, made.observed_at, made.outcome) == ("f" * 64, at, None)


def test_a_retry_while_the_target_is_read_is_refused():
    source = shop(1)
    with transaction.atomic():
        new = [parts.NewPart(target_id=targets(source)[0].pk, dedupe_key="scrape:one")]
        run = parts.begin(SCRAPE_RUNS, source, RunTrigger.MANUAL, new)
    old = RunPart.objects.get(run=run)
    lose(old)
    with transaction.atomic():
        parts.begin(SCRAPE_RUNS, source, RunTrigger.MANUAL, new)
    with pytest.raises(Conflict):
        jobs.retry(OLGA, old.job_id)
    assert Run.objects.count() == 2


def test_a_retry_of_what_was_deleted_is_refused():
    source = shop(1)
    [part] = begin(source)
    lose(part)
    upkeep(CLOSE_ORPHANS)
    RunPart.objects.all().delete()
    with pytest.raises(Conflict, match="deleted after the retention period"):
        jobs.retry(OLGA, part.job_id)


def test_a_part_is_ended_once():
    source = shop(2)
    first, _ = begin(source)
    assert end(first, found=offer("10.00", sku="A")) == "OFFER"
    assert end(first, "TITLE_NOT_FOUND") == "OFFER"
    assert targets(source)[0].consecutive_failures == 0


def test_a_part_that_could_not_be_noted_has_failed_and_is_never_promoted(monkeypatch):
    source = shop(2)
    first, second = begin(source)
    with monkeypatch.context() as patched:
        patched.setattr(ScrapeRuns, "part_ended", broken)
        assert end(first, found=offer("10.00", sku="A")) == "FAILED"
    end(second, found=offer("11.00", sku="B"))
    assert (prices(source), RunPart.objects.get(pk=first.pk).detail["error"]) == ([11.00], "broken on purpose")


def test_judging_that_fails_keeps_the_parts_for_the_end_of_the_run(monkeypatch):
    source = shop(21)
    begun = begin(source)
    with monkeypatch.context() as patched:
        patched.setattr(ScrapeRuns, "judge_batch", broken)
        for number, part in enumerate(begun[:20]):
            end(part, found=offer(f"{number + 10}.00", sku=f"S-{number}"))
    assert (prices(source), outcomes(Run.objects.get())[:20]) == ([], ["OFFER"] * 20)
    end(begun[20], found=offer("50.00", sku="S-20"))
    assert len(prices(source)) == 21


def test_an_end_that_fails_writes_nothing_and_says_so(monkeypatch):
    source = shop(1)
    [part] = begin(source)
    with monkeypatch.context() as patched:
        patched.setattr(ScrapeRuns, "end", broken)
        end(part, found=offer("10.00", sku="A"))
    run = Run.objects.get()
    assert (run.status, run.error, prices(source), open_alerts()) == ("FAILED", "broken on purpose", [], ["RUN_FAILED"])
    [other] = begin(source)
    end(other, found=offer("12.00", sku="A"))
    assert (prices(source), open_alerts()) == ([12.00], []), "what the failed run read is not judged any more"


def broken(*_given):
    raise RuntimeError("broken on purpose")


def test_cancelling_what_is_open_leaves_other_sources_alone():
    source, other = shop(3), shop(2)
    mine, others = begin(source), begin(other)
    with transaction.atomic(), connection.cursor() as cursor:
        SCRAPE_RUNS.lock(cursor, source)
        assert parts.cancel_open(cursor, SCRAPE_RUNS.name, source.pk) == 3
    states = dict(Job.objects.values_list("pk", "state"))
    assert {states[part.job_id] for part in mine} == {"cancelled"}
    assert {states[part.job_id] for part in others} == {"pending"}
    upkeep(CLOSE_ORPHANS)
    assert [run.status for run in Run.objects.order_by("no")] == ["SUCCEEDED", "RUNNING"]
    assert state_or_none(source) == []


def state_or_none(source) -> list:
    """What the cancelled parts did to the adapter: nothing."""
    return rows("SELECT FROM adapter_states WHERE source_id = %s", source.pk)


def owner(statement: str) -> None:
    with connections["owner"].cursor() as cursor:
        cursor.execute(statement)


def test_days_of_parts_are_made_ahead_and_dropped_after_30_days():
    old, recent, last = (catalog.now() + timedelta(days=days) for days in (-40, -20, 14))
    kept = []
    for moment in (old, recent):
        after = moment + timedelta(days=1)
        days = f"FROM ('{moment:%Y-%m-%d} 00:00+00') TO ('{after:%Y-%m-%d} 00:00+00')"
        owner(f"CREATE TABLE run_parts_{moment:%Y%m%d} PARTITION OF run_parts FOR VALUES {days}")
        kept.append(f"run_parts_{moment:%Y%m%d}")
    owner(f"DROP TABLE IF EXISTS run_parts_{last:%Y%m%d}")
    try:
        upkeep(PART_DAYS)
        tables = {table for (table,) in rows("SELECT relname FROM pg_class WHERE relname ~ '^run_parts_[0-9]+$'")}
    finally:
        for table in kept:
            owner(f"DROP TABLE IF EXISTS {table}")
    assert kept[0] not in tables
    assert {kept[1], f"run_parts_{catalog.now():%Y%m%d}", f"run_parts_{last:%Y%m%d}"} <= tables


def test_succeeded_page_jobs_live_for_one_day():
    source = shop(3)
    fresh, old, failed = begin(source)
    for part, age, how in ((fresh, 20, "succeeded"), (old, 26, "succeeded"), (failed, 26, "failed")):
        change(part.job_id, f"state = '{how}', finished_at = now() - interval '{age} hours'")
    other = enqueue(CLOSE_ORPHANS).job_id
    run_until_idle(queues=("maintenance",))
    change(other, "finished_at = now() - interval '26 hours'")
    upkeep(retention.CLEAN_UP)
    left = set(Job.objects.values_list("pk", flat=True))
    assert {fresh.job_id, failed.job_id, other} <= left
    assert old.job_id not in left


def test_adapter_states_belong_to_what_was_judged():
    source = shop(1)
    [part] = begin(source)
    end(part, found=offer("10.00", sku="A"))
    assert (state_of(source).uncounted, len(state_of(source).recent)) == (1, 1)
