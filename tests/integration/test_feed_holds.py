"""Held means frozen: every cell of the table of decisions, and what must not be possible meanwhile."""

import datetime as dt
import threading

import pytest
from django.db import transaction
from structlog.testing import capture_logs
from tests.support.catalog import audited
from tests.support.feed_world import OLGA, count
from tests.support.feeds import row
from tests.support.jobs import change
from tests.support.tables import rows
from tests.support.together import together
from tests.support.waiting import wait_for

from harvester.catalog import corrections, display_primary, sources
from harvester.catalog.models import Source
from harvester.engine.models import Job
from harvester.feeds import decisions, ingest, verbs
from harvester.feeds.models import Feed
from harvester.feeds.runs import FEED_RUNS
from harvester.kernel.errors import Conflict, InvalidInput, TerminalError
from harvester.ops.models import Alert
from harvester.runs import decisions as run_decisions
from harvester.runs.decision_jobs import REJUDGING
from harvester.runs.errors import SubjectBusy
from harvester.runs.models import Run

pytestmark = pytest.mark.usefixtures("database")
ALL = range(100, 140)


def outcome(run):
    return Run.objects.values_list("outcome", flat=True).get(pk=run.pk)


def code_of(call, *args, **more):
    with pytest.raises(Conflict) as refusal:
        call(*args, **more)
    return refusal.value.code


def hours(duration):
    return round(duration.total_seconds() / 3600)


# The table, column "nothing held".


def test_nothing_held_and_a_run_passes(world):
    world.put(*ALL)
    run = world.run()
    source = world.look()
    assert run.outcome == "PROMOTED"
    assert (source.last_promoted_run_no, source.held_run_no, source.held_since) == (run.no, None, None)
    assert source.frozen == dt.timedelta(0)


def test_nothing_held_and_a_promotion_takes_back_lost_time(world):
    run = world.hold()
    world.pass_time(10)
    world.reject(run)
    assert hours(world.look().frozen) == 10
    world.put(*ALL, 200)
    assert world.run().outcome == "PROMOTED"
    assert world.look().frozen == dt.timedelta(0)


def test_nothing_held_and_a_run_is_held(world):
    run = world.hold()
    source = world.look()
    assert source.held_run_no == run.no
    assert source.held_since >= run.started_at


@pytest.mark.parametrize("bad", [False, True])
def test_nothing_held_and_a_run_is_skipped_or_fails(world, bad):
    world.put(*ALL)
    world.run()
    before = world.look().last_promoted_at
    if bad:
        world.put_bytes(b"<html><body>Sorry</body></html>")
    run = world.run()
    assert (run.status, run.outcome) == (("FAILED", None) if bad else ("SUCCEEDED", "SKIPPED"))
    source = world.look()
    assert (source.last_promoted_at, source.held_run_no, source.frozen) == (before, None, dt.timedelta(0))


def test_nothing_held_and_nothing_to_decide(world):
    world.put(*ALL)
    run = world.run()
    assert code_of(run_decisions.request_approval, OLGA, run.id) == "NOT_BLOCKED"
    assert code_of(run_decisions.request_rejection, OLGA, run.id, "no") == "NOT_BLOCKED"


def test_nothing_held_and_pausing_does_not_stop_the_clock(world):
    world.put(*ALL)
    world.run()
    verbs.pause(OLGA, world.feed.id)
    world.pass_time(47)
    assert len(world.shown()) == 40
    world.pass_time(2)
    assert world.shown() == {}


def test_nothing_held_and_a_change_of_expiry_counts_at_once(world):
    world.put(*ALL)
    world.run()
    world.pass_time(30)
    verbs.set_expiry_hours(OLGA, world.feed.id, 24)
    assert world.shown() == {}
    verbs.set_expiry_hours(OLGA, world.feed.id, 48)
    assert len(world.shown()) == 40
    assert [verb for verb, *_ in audited()].count("EXPIRY_HOURS_CHANGED") == 2


def test_nothing_held_and_primary_and_corrections_count_at_once(world):
    world.put(*ALL)
    world.run()
    correct_and_switch(world)


def correct_and_switch(world):
    before = world.shown()
    made = corrections.create(
        OLGA, scope="SOURCE", action="MULTIPLIER", multiplier="10", reason="in dimes", source_id=world.source.id
    )
    assert world.shown()["S-139"] == ("Thing 139", 13.90, True)
    corrections.revoke(OLGA, made.pk)
    display_primary.unset_display_primary(OLGA, world.source.id)
    assert world.shown() == {}
    display_primary.set_display_primary(OLGA, world.source.id)
    assert world.shown() == before


def test_nothing_held_and_a_run_is_ignored(world):
    world.put(*ALL)
    world.run()
    world.put(row(100, Price="77.77"), *ALL[1:], 200)
    bad = world.run()
    assert decisions.ignore(OLGA, bad.id, "prices of another shop") == 2
    shown = world.shown()
    assert shown["S-100"] == ("Thing 100", 1.00, True)
    assert "S-200" not in shown, "nothing is left to show of a product whose only price is ignored"
    assert rows("SELECT count(*) FROM readable_prices WHERE run_no = %s", bad.no) == [(0,)]
    assert world.figures(world.run()).skipped_reason == "UNCHANGED_IGNORED", "the same file is refused"
    world.put(row(100, Price="77.77"), *ALL[1:])
    again = world.run()
    assert again.outcome == "PROMOTED", "half of its prices may come back"
    assert world.figures(again).prices_written == 1, "what an ignored run saw is written again, even if unchanged"
    assert world.shown()["S-100"][1] == 77.77


def test_a_price_that_only_an_ignored_run_had_is_written_again(world):
    world.put(*ALL)
    world.run()
    world.put(row(100, Price="77.77"), *ALL[1:], 200)
    decisions.ignore(OLGA, world.run().id, "prices of another shop")
    assert "S-200" not in world.shown()
    world.put(*ALL, 200)
    assert world.run().outcome == "PROMOTED"
    assert world.shown().get("S-200") == ("Thing 200", 2.00, True)


def test_nothing_held_and_ignoring_is_undone(world):
    world.put(*ALL)
    world.run()
    world.put(row(100, Price="77.77"), *ALL[1:])
    bad = world.run()
    before = world.shown()
    decisions.ignore(OLGA, bad.id, "a slip")
    decisions.undo_ignore(OLGA, bad.id)
    assert world.shown() == before


def test_nothing_held_and_undoing_is_refused_when_nothing_newer_is_known(world):
    world.put(*ALL, 200)
    world.run()
    world.put(*ALL, row(200, Price="9.99"))
    bad = world.run()
    decisions.ignore(OLGA, bad.id, "a slip")
    world.put(*ALL)
    assert world.run().outcome == "PROMOTED"
    before = world.shown()
    with pytest.raises(Conflict):
        decisions.undo_ignore(OLGA, bad.id)
    assert world.shown() == before


# The table, column "run H held since t".


def test_held_and_a_newer_run_passes(world):
    run = world.hold()
    world.pass_time(10)
    world.put(*ALL, 200)
    newer = world.run()
    source = world.look()
    assert (newer.outcome, outcome(run)) == ("PROMOTED", "OVERTAKEN")
    assert (source.held_run_no, source.held_since, source.frozen) == (None, None, dt.timedelta(0))
    assert count("held_changes") == 0
    assert "S-200" in world.shown()


def test_held_and_a_newer_run_is_held_too(world):
    run = world.hold()
    since = world.look().held_since
    newer = world.shrink(100, 103)
    source = world.look()
    assert (outcome(run), outcome(newer)) == ("OVERTAKEN", "HELD")
    assert (source.held_run_no, source.held_since) == (newer.no, since)


@pytest.mark.parametrize("bad", [False, True])
def test_held_and_a_newer_run_is_skipped_or_fails(world, bad):
    run = world.hold()
    since = world.look().held_since
    if bad:
        world.put_bytes(b"<html><body>Sorry</body></html>")
    newer = world.run()
    assert newer.outcome == (None if bad else "SKIPPED")
    assert (world.look().held_run_no, world.look().held_since) == (run.no, since)
    assert world.approve(run).state == "succeeded"
    assert outcome(run) == "APPROVED"


def test_held_and_approved(world):
    run = world.hold()
    world.pass_time(10)
    world.approve(run)
    source = world.look()
    assert (outcome(run), source.held_run_no, source.held_since) == ("APPROVED", None, None)
    assert (source.frozen, source.last_promoted_run_no) == (dt.timedelta(0), run.no)
    assert len(world.shown()) == 40, "what is missing shows until it expires"
    accepted = rows("SELECT count(*) FROM offers WHERE absence_accepted")
    assert accepted == [(37,)]


def test_held_and_rejected(world):
    run = world.hold()
    world.pass_time(10)
    world.reject(run)
    source = world.look()
    assert (outcome(run), source.held_run_no, source.held_since) == ("REJECTED", None, None)
    assert hours(source.frozen) == 10
    assert count("held_changes") == 0
    assert [verb for verb, *_ in audited()].count("ACTIVATION_REJECTED") == 1
    skipped = world.run()
    assert world.figures(skipped).skipped_reason == "UNCHANGED_REJECTED"


def test_rejecting_needs_a_reason(world):
    run = world.hold()
    for reason in ("  ", "x" * 1_001):
        with pytest.raises(InvalidInput, match="A reason is needed, of at most 1,000 characters"):
            run_decisions.request_rejection(OLGA, run.id, reason)
    for reason in ("half\x00a file", "half \ud800"):
        with pytest.raises(InvalidInput, match=r"^reason: it has a NUL or a broken character"):
            run_decisions.request_rejection(OLGA, run.id, reason)
    assert outcome(run) == "HELD"
    assert world.reject(run, "x" * 1_000).state == "succeeded"


def test_held_until_max_hold_is_reached(world):
    run = world.hold()
    world.pass_time(168 + 47)
    assert len(world.shown()) == 40, "the clock stopped for a week and ran for 47 hours"
    source = world.look()
    assert (source.held_run_no, source.frozen) == (run.no, dt.timedelta(0)), "nothing is written"
    world.pass_time(2)
    assert world.shown() == {}
    world.approve(run)
    assert world.names() == {"S-100", "S-101", "S-102"}, "it stays decidable"


@pytest.mark.parametrize("status", ["PAUSED", "DISABLED"])
@pytest.mark.parametrize("verdict", ["approve", "reject"])
def test_held_and_the_feed_is_switched(world, status, verdict):
    run = world.hold()
    before = world.look().held_since
    world.change(status=status)
    world.pass_time(72)
    assert len(world.shown()) == 40
    assert before - world.look().held_since == dt.timedelta(hours=72)
    assert getattr(world, verdict)(run).state == "succeeded"
    assert world.look().held_run_no is None
    if status == "PAUSED":
        verbs.resume(OLGA, world.feed.id)
    else:
        verbs.re_enable(OLGA, world.feed.id, acknowledged=True)
    assert len(world.shown()) == 40


def test_held_and_expiry_must_not_change(world):
    world.hold()
    assert code_of(verbs.set_expiry_hours, OLGA, world.feed.id, 24) == "RUN_HELD"
    code_of(sources.set_expiry_hours, OLGA, world.source.id, 24)
    code_of(sources.update, OLGA, world.source.id, max_hold_hours=24)
    assert world.look().expiry_hours == 48


def test_held_and_primary_and_corrections_count_at_once(world):
    world.hold()
    correct_and_switch(world)


def test_a_correction_made_while_held_applies_to_what_is_approved(world):
    world.put(*ALL)
    world.run()
    world.put(row(100, Price="5.00"), 101)
    run = world.run()
    corrections.create(
        OLGA, scope="SOURCE", action="MULTIPLIER", multiplier="10", reason="in dimes", source_id=world.source.id,
        extent="WINDOW",
    )  # fmt: skip
    world.approve(run)
    assert world.shown()["S-100"][1] == 50.0


def hide(world, number):
    """Ignore whatever is known of one product's prices."""
    [(product,)] = rows("SELECT id FROM source_products WHERE identity_value = %s", f"S-{number}")
    return corrections.create(
        OLGA, scope="PRODUCT", action="IGNORE", reason="not its price", source_id=world.source.id, product_id=product,
        extent="WINDOW",
    )  # fmt: skip


@pytest.mark.parametrize("price", ["1.00", "5.00"])
def test_a_correction_made_before_the_hold_is_revoked_while_held(world, price):
    world.put(*ALL)
    world.run()
    made = hide(world, 100)
    world.put(row(100, Price=price), 101)
    run = world.run()
    assert run.outcome == "HELD"
    corrections.revoke(OLGA, made.pk)
    assert world.shown()["S-100"][1] == 1.00
    assert world.approve(run).state == "succeeded"
    assert world.shown()["S-100"][1] == float(price)


@pytest.mark.parametrize("price", ["1.00", "5.00"])
def test_a_correction_made_while_held_is_revoked_after_the_approval(world, price):
    world.put(*ALL)
    world.run()
    world.put(row(100, Price=price), 101)
    run = world.run()
    made = hide(world, 100)
    assert world.approve(run).state == "succeeded"
    assert "S-100" not in world.shown()
    corrections.revoke(OLGA, made.pk)
    assert world.shown()["S-100"][1] == float(price)


@pytest.mark.parametrize(
    ("changed", "shown"),
    [({"Price": "5.00"}, 5.00), ({"Availability": "out of stock"}, None), ({"Name": "Another thing"}, None)],
    ids=["another price", "the same price", "no price"],
)
def test_a_price_that_is_hidden_while_held_shows_again_only_with_another_price(world, changed, shown):
    world.put(*ALL)
    world.run()
    world.put(row(100, **changed), 101)
    run = world.run()
    [(product,)] = rows("SELECT id FROM source_products WHERE identity_value = 'S-100'")
    corrections.create(
        OLGA, scope="PRODUCT", action="IGNORE", reason="not its price", source_id=world.source.id, product_id=product
    )
    assert "S-100" not in world.shown()
    assert world.approve(run).state == "succeeded"
    assert world.shown().get("S-100", (None, None))[1] == shown


def test_a_correction_is_revoked_between_match_and_promotion(world, monkeypatch):
    world.put(*ALL)
    world.run()
    made = hide(world, 100)
    real = ingest.add_new_products

    def revoke_first(*args, **more):
        [revoked] = together(lambda: corrections.revoke(OLGA, made.pk))
        assert revoked.revoked_at
        return real(*args, **more)

    monkeypatch.setattr(ingest, "add_new_products", revoke_first)
    world.put(row(100, Price="5.00"), *ALL[1:], 200)
    run = world.run()
    assert (run.outcome, run.attempt) == ("PROMOTED", 1)
    assert world.shown()["S-100"][1] == 5.00


def test_a_product_that_came_back_while_its_correction_was_valid_is_seen_by_the_approved_run(world):
    world.put(*ALL)
    world.run()
    world.put(*ALL[1:])
    world.run()
    made = hide(world, 100)
    run = world.shrink(100, 101)
    corrections.revoke(OLGA, made.pk)
    world.approve(run)
    assert seen_last() == {"S-100", "S-101"}


def seen_last():
    """The products whose offers say that the last promoted run saw them."""
    found = rows(
        "SELECT p.identity_value FROM offers o JOIN source_products p ON p.id = o.product_id "
        "WHERE o.seen_until IS NULL AND NOT o.absence_accepted"
    )
    return {value for (value,) in found}


def test_after_corrections_that_changed_while_a_run_was_held_its_file_is_read_again(world):
    world.put(*ALL)
    world.run()
    made = hide(world, 139)
    run = world.shrink(100, 101)
    corrections.revoke(OLGA, made.pk)
    made = hide(world, 100)
    world.approve(run)
    corrections.revoke(OLGA, made.pk)
    assert world.run().outcome == "PROMOTED", "it is the same file"
    assert seen_last() == {"S-100", "S-101"}
    assert world.run().outcome == "SKIPPED"


def test_products_that_a_failed_run_made_meanwhile_are_those_of_the_held_run(world, monkeypatch):
    world.put(*ALL)
    world.run()
    held = world.shrink(100, 500)

    def broken(*_):
        raise TerminalError("on fire")

    monkeypatch.setattr(ingest, "promote", broken)
    world.put(*ALL, row(500, Name="Seen by the run that failed"))
    assert world.run().status == "FAILED"
    monkeypatch.undo()
    assert world.approve(held).state == "succeeded"
    assert world.shown()["S-500"] == ("Thing 500", 5.00, True)
    assert rows("SELECT count(*) FROM source_products WHERE identity_value = 'S-500'") == [(1,)]


def test_a_product_that_was_hidden_while_runs_saw_it_shows_again_at_once(world):
    world.put(*ALL)
    world.run()
    made = hide(world, 100)
    world.pass_time(20)
    world.put(*ALL, 200)
    world.run()
    world.pass_time(30)
    corrections.revoke(OLGA, made.pk)
    assert "S-100" in world.shown(), "the last promoted run saw it"


def test_held_and_an_older_run_is_ignored(world):
    """Forty good products, then a thousandfold of prices; the held run is held for its prices, and then is not."""
    world.put(*ALL)
    world.run()
    world.change(thresholds={"shock_share": 1.0})
    world.put(*[row(number, Price=f"{number}.00") for number in ALL])
    bad = world.run()
    assert bad.outcome == "PROMOTED"
    world.change(thresholds={})
    world.put(*[row(number, Price=f"{number // 100}.{number % 100:02}") for number in ALL], 200)
    held = world.run()
    assert (held.outcome, world.figures(held).prices_due) == ("HELD", 41)
    decisions.ignore(OLGA, bad.id, "in dollars")
    assert world.shown()["S-139"][1] == 1.39
    world.work(Job.objects.latest("id").id)
    assert outcome(held) == "PROMOTED", "nothing holds it any more"
    assert world.look().held_run_no is None
    assert world.shown()["S-200"][1] == 2.0


def test_held_again_with_other_figures(world):
    held, bad = hold_after_a_bad_run(world)
    seen = FEED_RUNS.figures(held)
    decisions.ignore(OLGA, bad.id, "wrong")
    world.work(Job.objects.latest("id").id)
    assert outcome(held) == "HELD"
    assert FEED_RUNS.figures(held) != seen
    assert code_of(run_decisions.request_approval, OLGA, held.id, expected=seen) == "FIGURES_CHANGED"
    assert world.approve(held, expected=FEED_RUNS.figures(held)).state == "succeeded"
    assert world.shown()["S-100"][1] == 7.77, "what the ignored run saw and the held one too is written"
    assert world.shown()["S-200"][1] == 2.0, "a product of the ignored run that the held one saw too"


def hold_after_a_bad_run(world):
    """Run 1 is good; run 2 has another price of S-100 and S-200 in addition; run 3 has just these two and is held."""
    world.put(*ALL)
    world.run()
    world.put(row(100, Price="7.77"), *ALL[1:], 200)
    bad = world.run()
    world.put(row(100, Price="7.77"), 200)
    held = world.run()
    assert (bad.outcome, held.outcome) == ("PROMOTED", "HELD")
    return held, bad


def test_a_held_run_cannot_be_approved_before_it_was_judged_again(world):
    held, bad = hold_after_a_bad_run(world)
    decisions.ignore(OLGA, bad.id, "wrong")
    assert code_of(run_decisions.request_approval, OLGA, held.id) == "FIGURES_CHANGED"
    world.work(Job.objects.latest("id").id)
    assert world.approve(held).state == "succeeded"
    assert world.shown()["S-100"][1] == 7.77


def test_an_approval_that_waits_while_an_older_run_is_ignored_is_refused(world):
    held, bad = hold_after_a_bad_run(world)
    made = run_decisions.request_approval(OLGA, held.id)
    decisions.ignore(OLGA, bad.id, "wrong")
    world.work(made.job_id)
    assert Job.objects.get(pk=made.job_id).error_type == "FIGURES_CHANGED"
    assert (outcome(held), world.figures(held).prices_due) == ("HELD", 2)


def test_a_run_that_is_held_while_an_older_one_is_about_to_be_ignored_is_judged_again(world):
    held, bad = hold_after_a_bad_run(world)
    since = world.look().held_since
    Run.objects.filter(pk=held.pk).update(outcome=None)
    Source.objects.update(held_run_no=None, held_since=None)

    def ignore():
        return decisions.ignore(OLGA, bad.id, "wrong")

    def hold():
        with transaction.atomic():
            Feed.objects.select_for_update().get(pk=world.feed.pk)
            start.set()
            wait_for(lambda: rows("SELECT 1 FROM pg_locks WHERE NOT granted"), "somebody waits")
            Run.objects.filter(pk=held.pk).update(outcome="HELD")
            Source.objects.update(held_run_no=held.no, held_since=since)

    start = threading.Event()
    together(hold, lambda: start.wait(30) and ignore())
    assert Run.objects.get(pk=held.pk).stage == REJUDGING
    assert code_of(run_decisions.request_approval, OLGA, held.id) == "FIGURES_CHANGED"


def test_a_held_run_may_be_rejected_before_it_was_judged_again(world):
    held, bad = hold_after_a_bad_run(world)
    decisions.ignore(OLGA, bad.id, "wrong")
    change(Job.objects.latest("id").id, "run_at = now() + interval '1 hour'")
    assert world.reject(held).state == "succeeded"
    assert outcome(held) == "REJECTED"
    assert Run.objects.get(pk=held.pk).stage is None


def test_judging_again_waits_for_a_run_in_progress(world):
    held, bad = hold_after_a_bad_run(world)
    decisions.ignore(OLGA, bad.id, "wrong")
    judging = Job.objects.latest("id")
    with world.locked():
        world.work(judging.id)
    judging.refresh_from_db()
    assert (judging.state, judging.attempt) == ("pending", 0), "it comes back, and no attempt is counted"
    assert outcome(held) == "HELD"


def test_held_and_ignoring_is_undone(world):
    held, bad = hold_after_a_bad_run(world)
    decisions.ignore(OLGA, bad.id, "wrong")
    world.work(Job.objects.latest("id").id)
    assert world.figures(held).prices_due == 2
    decisions.undo_ignore(OLGA, bad.id)
    world.work(Job.objects.latest("id").id)
    assert outcome(held) == "HELD"
    assert world.figures(held).prices_due == 1, "only what shown products are compared with stays forgotten"
    assert world.shown()["S-100"][1] == 7.77


def test_ignoring_and_undoing_never_shows_an_older_price_over_a_newer_observation(world):
    """Run 2 says 7.77, is ignored, run 3 observes 1.00 again, which is what run 1 said; then the ignoring is undone."""
    world.put(*ALL)
    world.run()
    world.put(row(100, Price="7.77"), *ALL[1:])
    bad = world.run()
    decisions.ignore(OLGA, bad.id, "wrong")
    world.put(*ALL)
    world.run()
    assert world.shown()["S-100"][1] == 1.00
    decisions.undo_ignore(OLGA, bad.id)
    assert world.shown()["S-100"][1] == 1.00


# Frozen means frozen.


@pytest.mark.parametrize("end", ["hold", "reject"])
def test_holding_for_three_days_and_rejecting_change_nothing_that_consumers_see(world, end):
    world.put(*ALL)
    world.run()
    before = world.shown()
    world.put(row(100, Price="77.77"), row(101, Name="Another name"), row(102, Availability="out of stock"), 500)
    run = world.run()
    assert run.outcome == "HELD"
    world.pass_time(72)
    assert world.shown() == before
    if end == "reject":
        world.reject(run)
        assert world.shown() == before
        world.pass_time(47)
        assert world.shown() == before, "the time that it was held stays lost"
        world.pass_time(2)
        assert world.shown() == {}


def test_an_approved_shrink_is_not_held_again(world):
    run = world.hold()
    world.approve(run)
    for numbers in [(100, 101, 102, 103), (100, 101)]:
        world.put(*numbers)
        assert world.run().outcome == "PROMOTED"


def test_gates_use_the_clock_that_stops_during_a_hold(world):
    """By the clock on the wall, everything has expired; by the source's, nothing has."""
    world.hold()
    world.pass_time(60)
    figures = world.figures(world.shrink(100, 103))
    assert (figures.active_count_before, figures.would_expire_count) == (40, 38)


def test_a_price_first_seen_in_a_rejected_run_is_written_by_the_next_one(world):
    world.put(*ALL)
    world.run()
    world.put(row(100, Price="77.77"))
    world.reject(world.run())
    assert rows("SELECT count(*) FROM prices WHERE amount = 77.77") == [(0,)]
    world.put(row(100, Price="77.77"), *ALL[1:])
    run = world.run()
    assert (run.outcome, world.figures(run).prices_written) == ("PROMOTED", 1)
    assert world.shown()["S-100"][1] == 77.77


HOLDS = [30, 100, 185]  # hours: shorter and longer than the expiry of 48, and longer than max_hold
VANISHING = {"S-139", "S-140"}


def aged(world):
    """S-140 was last seen 30 hours ago, all others 20 hours ago; then a run is held."""
    world.put(*ALL, 140)
    world.run()
    world.pass_time(10)
    world.put(*ALL)
    world.run()
    world.pass_time(20)
    return world.shrink()


def approved(world, run):
    world.approve(run)


def rejected(world, run):
    world.reject(run)


def overtaken(world, _run):
    world.put(*range(100, 136))
    assert world.run().outcome == "PROMOTED"


def held_again(world, _run):
    world.shrink(100)


@pytest.mark.parametrize("decide", [approved, rejected, overtaken, held_again])
@pytest.mark.parametrize("held", HOLDS)
def test_no_decision_makes_a_visible_product_vanish_at_once(world, decide, held):
    run = aged(world)
    world.pass_time(held)
    before = world.names()
    assert before >= VANISHING
    decide(world, run)
    assert world.names() == before
    if decide is held_again:
        return
    late = max(0, held - 168)
    world.pass_time(17.5 - late)
    assert world.names() >= VANISHING, "each product has left what it had left before"
    world.pass_time(1)
    assert world.names() & VANISHING == {"S-139"}
    world.pass_time(10)
    assert world.names() & VANISHING == set()


def test_lost_time_adds_up_over_several_holds_up_to_max_hold(world):
    world.reject(world.hold())
    for number in (103, 104):
        run = world.shrink(number)
        world.pass_time(100)
        assert len(world.shown()) == 40
        world.reject(run)
    assert hours(world.look().frozen) == 200
    assert len(world.shown()) == 40, "200 hours passed, for 168 of them the clock stopped"
    world.pass_time(17)
    assert world.shown() == {}


# Who decides what, and the codes of refusals; test_feed_tables.py has those that need no held run.


def test_a_run_that_was_approved(world):
    run = world.hold()
    world.approve(run)
    assert code_of(run_decisions.request_approval, OLGA, run.id) == "ALREADY_APPROVED"
    assert code_of(run_decisions.request_rejection, OLGA, run.id, "no") == "ALREADY_APPROVED"


def test_a_run_that_was_rejected(world):
    run = world.hold()
    world.reject(run)
    assert code_of(run_decisions.request_approval, OLGA, run.id) == "ALREADY_REJECTED"
    assert code_of(run_decisions.request_rejection, OLGA, run.id, "no") == "ALREADY_REJECTED"


@pytest.mark.parametrize("newer", [overtaken, held_again])
def test_a_run_that_was_overtaken(world, newer):
    run = world.hold()
    newer(world, run)
    assert code_of(run_decisions.request_approval, OLGA, run.id) == "STALE_RUN"
    assert code_of(run_decisions.request_rejection, OLGA, run.id, "no") == "STALE_RUN"


def test_a_feed_with_a_run_in_progress(world):
    run = world.hold()
    world.running()
    assert code_of(run_decisions.request_approval, OLGA, run.id) == "FEED_BUSY"
    assert code_of(run_decisions.request_rejection, OLGA, run.id, "no") == "FEED_BUSY"
    assert code_of(decisions.ignore, OLGA, run.id, "no") == "FEED_BUSY"


def test_a_feed_whose_lock_somebody_has(world):
    run = world.hold()
    with world.locked():
        job = world.approve(run)
        assert code_of(decisions.ignore, OLGA, run.id, "no") == "FEED_BUSY"
    assert (job.state, job.error_type) == ("failed", "FEED_BUSY")
    assert outcome(run) == "HELD"
    assert world.approve(run).state == "succeeded", "and afterwards it can be decided"


@pytest.mark.parametrize("figure", ["products_upserted", "products_new", "products_missing", "prices_due"])
def test_figures_that_are_not_what_the_person_saw(world, figure):
    run = world.hold()
    seen = FEED_RUNS.figures(run)
    assert (
        code_of(run_decisions.request_approval, OLGA, run.id, {**seen, figure: seen[figure] + 1}) == "FIGURES_CHANGED"
    )
    assert world.approve(run, expected=seen).state == "succeeded"


def test_a_refusal_and_a_decision_are_logged_as_events(world):
    run = world.hold()
    world.approve(run)
    with capture_logs() as reported:
        code_of(run_decisions.request_approval, OLGA, run.id)
    assert [event["event"] for event in reported] == ["ACTIVATION_APPROVAL_REJECTED"]
    assert [verb for verb, *_ in audited()].count("ACTIVATION_APPROVED") == 1


def one_decision(run, *calls):
    """Several decisions at once: one becomes a job, the others are refused with a code."""
    results = together(*calls)
    refused = [result for result in results if isinstance(result, Exception)]
    assert len(refused) == len(calls) - 1
    assert all(isinstance(refusal, SubjectBusy) for refusal in refused)
    [made] = [result for result in results if not isinstance(result, Exception)]
    return made


def test_two_people_approve_at_once(world):
    run = world.hold()
    made = one_decision(run, *[lambda: run_decisions.request_approval(OLGA, run.id)] * 2)
    world.work(made.job_id)
    assert outcome(run) == "APPROVED"
    assert [verb for verb, *_ in audited()].count("ACTIVATION_APPROVED") == 1


def test_one_approves_and_one_rejects_at_once(world):
    run = world.hold()
    made = one_decision(
        run,
        lambda: run_decisions.request_approval(OLGA, run.id),
        lambda: run_decisions.request_rejection(OLGA, run.id, "no"),
    )
    world.work(made.job_id)
    expected = "APPROVED" if Job.objects.get(pk=made.job_id).kind == "runs.approve" else "REJECTED"
    assert outcome(run) == expected


@pytest.mark.parametrize(("newer", "left"), [(overtaken, None), (held_again, "HELD")])
def test_an_approval_that_waits_while_a_newer_run_ends_is_stale(world, newer, left):
    run = world.hold()
    made = run_decisions.request_approval(OLGA, run.id)
    change(made.job_id, "run_at = now() + interval '1 hour'")
    newer(world, run)
    change(made.job_id, "run_at = now()")
    world.work(made.job_id)
    assert Job.objects.get(pk=made.job_id).error_type == "STALE_RUN"
    assert outcome(run) == "OVERTAKEN"
    assert (Run.objects.filter(outcome="HELD").values_list("outcome", flat=True).first()) == left


def test_a_run_and_an_approval_at_once_have_one_order(world):
    """The first one has the lock: the other one is refused, or comes back later."""
    run = world.hold()
    world.put(*ALL, 200)
    decision = run_decisions.request_approval(OLGA, run.id).job_id
    job = world.ask()
    world.work(job, threads=2)
    found = (Job.objects.get(pk=decision).error_type, Job.objects.get(pk=job).state, outcome(run))
    assert found in {
        (None, "succeeded", "APPROVED"),
        (None, "pending", "APPROVED"),
        ("FEED_BUSY", "succeeded", "OVERTAKEN"),
        ("STALE_RUN", "succeeded", "OVERTAKEN"),
    }


def test_the_same_approval_twice_promotes_once(world):
    """A job that is done again, as after a rescue: the second one finds the run decided."""
    run = world.hold()
    args = {"run_id": str(run.id), "actor": {"kind": "person", "id": "olga", "name": "Olga"}}
    jobs = [world.job("runs.approve", args), world.job("runs.approve", args)]
    for job in jobs:
        world.work(job)
    found = [Job.objects.get(pk=job) for job in jobs]
    assert sorted((job.state, job.error_type) for job in found) == [("failed", "ALREADY_APPROVED"), ("succeeded", None)]
    assert count("prices") == 40


def test_two_held_runs_of_one_source_are_not_possible(world):
    from django.db import IntegrityError

    run = world.hold()
    first = Run.objects.filter(source_id=world.source.pk).order_by("no").first()
    with pytest.raises(IntegrityError, match="runs_one_held_per_subject"):
        Run.objects.filter(pk=first.pk).update(outcome="HELD")
    assert outcome(run) == "HELD"


def test_the_alert_of_a_hold_ends_with_the_decision(world):
    run = world.hold()
    reported = Alert.objects.filter(kind="RUN_HELD", resolved_at=None)
    assert ["EXPIRY_SPIKE: 37 of 40" in alert.body for alert in reported] == [True]
    newer = world.shrink(104)
    assert Alert.objects.filter(kind="RUN_HELD", resolved_at=None).count() == 1
    world.approve(newer)
    assert not Alert.objects.filter(kind="RUN_HELD", resolved_at=None).exists()
    assert outcome(run) == "OVERTAKEN"


def test_a_held_run_resolves_the_alert_about_failures(world):
    world.put(*ALL)
    world.run()
    world.put_bytes(b"<html><body>Sorry</body></html>")
    world.run()
    assert Alert.objects.filter(kind="RUN_FAILED", resolved_at=None).exists()
    world.shrink()
    assert not Alert.objects.filter(kind="RUN_FAILED", resolved_at=None).exists()
    assert Feed.objects.get().consecutive_failures == 0


def test_a_decision_keeps_the_times_of_the_run(world):
    run = world.hold()
    before = world.figures(run).run.timings
    assert before
    world.approve(run)
    after = world.figures(run).run.timings
    assert after.pop("promote") >= before.pop("promote")
    assert after == before
