"""Every kind of run passes the same suite, for what it supports.

A world of each kind (tests/support/run_worlds.py) says how to ask for a run, and what makes it pass, fail or be held.
"""

from datetime import timedelta

import pytest
from tests.support import scrape_world
from tests.support.actor_server import ActorServer
from tests.support.feed_world import OLGA
from tests.support.jobs import change
from tests.support.run_worlds import ActorRunWorld, FeedRunWorld, PageRunWorld
from tests.support.sftp_server import SftpServer
from tests.support.shop_server import ShopServer
from tests.support.workers import run_until_idle

from harvester.engine.enqueue import enqueue
from harvester.engine.models import Job
from harvester.engine.states import OPEN
from harvester.feeds.jobs import CLEAN_UP
from harvester.kernel.errors import Conflict
from harvester.ops.models import Alert, AuditEvent
from harvester.runs.decisions import request_approval, request_rejection
from harvester.runs.errors import FiguresChanged, NotBlocked, StaleRun
from harvester.runs.jobs import CLOSE_ORPHANS
from harvester.runs.kinds import HoldingKind, JobRunKind, PartsKind, all_kinds
from harvester.runs.models import Run

WORLDS = {
    "AFFILIATE_FEED": (FeedRunWorld, SftpServer),
    "SCRAPE": (PageRunWorld, ShopServer),
    "ACTOR": (ActorRunWorld, ActorServer),
}
BY_JOB = ["AFFILIATE_FEED", "ACTOR"]
HOLDING = ["AFFILIATE_FEED", "ACTOR"]


@pytest.fixture
def world(request, database, settings, tmp_path):
    scrape_world.allow_scraping(settings)
    made, server = WORLDS[request.param]
    with server(tmp_path) if server is SftpServer else server() as running:
        yield made(running)


each = pytest.mark.parametrize("world", WORLDS, indirect=True)
each_by_job = pytest.mark.parametrize("world", BY_JOB, indirect=True)
each_holding = pytest.mark.parametrize("world", HOLDING, indirect=True)


def settle(**options) -> None:
    """Work until nothing is left to do; pages do not wait for their turn."""
    for _ in range(50):
        run_until_idle(**options)
        if not Job.objects.filter(state__in=OPEN, queue="pages").exists():
            return
        scrape_world.hurry()


def run(world) -> Run:
    """One more run to its end."""
    world.request()
    settle()
    return newest(world)


def newest(world) -> Run:
    return Run.objects.filter(kind=world.kind.name, subject_id=world.subject.pk).latest("no")


def hold(world) -> Run:
    """A run that was promoted, and one that a gate holds."""
    run(world)
    world.put_suspicious()
    held = run(world)
    assert held.outcome == "HELD"
    return held


def decide(job) -> Job:
    settle()
    return Job.objects.get(pk=job.job_id)


def open_alerts() -> set[str]:
    return set(Alert.objects.filter(resolved_at=None).values_list("kind", flat=True))


def test_every_registered_kind_is_tested_for_all_that_it_supports():
    kinds = {kind.name: kind for kind in all_kinds()}
    assert kinds.keys() == WORLDS.keys()
    assert [name for name, kind in kinds.items() if isinstance(kind, JobRunKind)] == BY_JOB
    assert [name for name, kind in kinds.items() if isinstance(kind, HoldingKind)] == HOLDING
    assert all(kinds[name] is world.kind for name, (world, _) in WORLDS.items())


@each
def test_a_good_run_is_promoted_and_says_of_what_it_was(world):
    assert not world.facts()
    done = run(world)
    assert (done.status, done.outcome, done.error_code, done.stage) == ("SUCCEEDED", "PROMOTED", None, None)
    assert (done.subject_id, done.source_id) == (world.subject.pk, world.kind.source_id(world.subject))
    assert done.finished_at is not None
    assert world.facts()
    event = AuditEvent.objects.get(verb="RUN_PROMOTED", object_id=str(done.pk))
    assert (event.actor_kind, event.actor_id) == ("system", world.kind.actor.id)
    assert event.detail[world.kind.subject] == str(world.subject.pk)
    assert not Job.objects.filter(state__in=OPEN, queue__in=["feeds", "pages", "evidence"]).exists()


@each
def test_the_next_run_changes_what_is_shown(world):
    run(world)
    before = world.facts()
    world.put_good()
    assert run(world).outcome == "PROMOTED"
    assert world.facts() != before


@each
def test_nobody_gets_two_runs_of_a_subject_at_once(world):
    world.request()
    if isinstance(world.kind, PartsKind):
        with pytest.raises(Conflict):
            world.request()
        assert Run.objects.count() == 1
    else:
        world.request()
    settle(threads=4)
    assert Run.objects.filter(status="RUNNING").count() == 0
    spans = Run.objects.order_by("started_at").values_list("started_at", "finished_at")
    assert all(ended <= began for (_, ended), (began, _) in zip(spans, list(spans)[1:], strict=False))


@each_by_job
def test_a_failed_run_changes_nothing_and_raises_an_alert_that_a_good_one_resolves(world):
    run(world)
    before = world.facts()
    world.put_broken()
    failed = run(world)
    assert (failed.status, failed.outcome) == ("FAILED", None)
    assert failed.error_code
    assert failed.error
    assert world.facts() == before
    assert "RUN_FAILED" in open_alerts()
    world.put_good()
    assert run(world).outcome == "PROMOTED"
    assert open_alerts() == set()


@each_by_job
@pytest.mark.parametrize(("state", "code"), [("failed", "ABANDONED"), ("cancelled", "CANCELLED")])
def test_a_run_whose_job_ended_without_it_is_ended(world, state, code):
    lost = enqueue(
        world.kind.job_kind, {world.kind.subject_key: str(world.subject.pk), "trigger": "MANUAL"}, delay=3600
    )
    left = Run.objects.create(
        kind=world.kind.name, subject_id=world.subject.pk, source_id=world.kind.source_id(world.subject),
        trigger="MANUAL", status="RUNNING", job_id=lost.job_id,
    )  # fmt: skip
    world.kind.begin(left, world.subject)
    change(lost.job_id, f"state = '{state}', finished_at = now(), error_type = 'WORKER_LOST', error = 'gone'")
    enqueue(CLOSE_ORPHANS)
    settle()
    left.refresh_from_db()
    assert (left.status, left.error_code) == ("FAILED", code)
    assert ("RUN_FAILED" in open_alerts()) == (code == "ABANDONED")
    world.request()
    settle()
    assert newest(world).outcome == "PROMOTED"


@each
def test_old_runs_are_deleted_unless_something_points_to_them(world):
    run(world)
    world.put_good()
    run(world)
    world.put_good()
    last = run(world)
    Run.objects.update(started_at=last.started_at - timedelta(days=400))
    enqueue(CLEAN_UP)
    settle()
    left = set(Run.objects.values_list("no", flat=True))
    # Of a feed, the last promoted run and the one before it are needed.
    kept = {last.no, last.no - 1} if world.kind.name == "AFFILIATE_FEED" else set()
    assert left == kept
    assert world.facts()


@each_holding
def test_a_held_run_changes_nothing_until_it_is_approved(world):
    held = hold(world)
    before = world.facts()
    assert "RUN_HELD" in open_alerts()
    assert [item for item in held.verdict if item["holds"]]
    assert decide(request_approval(OLGA, held.pk, world.kind.figures(held))).state == "succeeded"
    held.refresh_from_db()
    assert (held.outcome, held.decided_by) == ("APPROVED", OLGA.name)
    assert held.decided_at is not None
    assert world.facts() != before or world.kind.name == "AFFILIATE_FEED", "what is missing goes as it expires"
    assert "RUN_HELD" not in open_alerts()
    assert AuditEvent.objects.filter(verb="ACTIVATION_APPROVED", object_id=str(held.pk), actor_id=OLGA.id).exists()


@each_holding
def test_a_rejected_run_changes_nothing(world):
    held = hold(world)
    before = world.facts()
    assert decide(request_rejection(OLGA, held.pk, "not whole")).state == "succeeded"
    held.refresh_from_db()
    assert (held.outcome, held.decision_reason) == ("REJECTED", "not whole")
    assert world.facts() == before
    assert open_alerts() == set()


@each_holding
def test_a_newer_run_takes_the_place_of_a_held_one(world):
    held = hold(world)
    world.put_good()
    assert run(world).outcome == "PROMOTED"
    held.refresh_from_db()
    assert held.outcome == "OVERTAKEN"
    assert open_alerts() == set()
    with pytest.raises(StaleRun):
        request_approval(OLGA, held.pk)


@each_holding
def test_a_decision_about_other_figures_is_refused(world):
    held = hold(world)
    name = world.kind.decision_figures[0]
    with pytest.raises(FiguresChanged):
        request_approval(OLGA, held.pk, {name: world.kind.figures(held)[name] + 1})
    held.refresh_from_db()
    assert held.outcome == "HELD"


@each
def test_only_a_held_run_can_be_decided(world):
    done = run(world)
    for decide_about in (request_approval, lambda who, pk: request_rejection(who, pk, "no")):
        with pytest.raises(NotBlocked):
            decide_about(OLGA, done.pk)
