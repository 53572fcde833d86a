"""Batches of pages from the first attempt to the facts: gathered, judged, promoted or refused, and what follows."""

from datetime import timedelta

import pytest
from django.db import transaction
from tests.support import catalog
from tests.support.page_runs import (
    begin,
    end,
    figures,
    judge_rest,
    offer,
    open_alerts,
    outcomes,
    prices,
    read_all,
    shop,
    shown,
    state_of,
    targets,
    waiting_entries,
)
from tests.support.tables import rows
from tests.support.workers import run_until_idle

from harvester.catalog.offers import differences
from harvester.engine.enqueue import enqueue
from harvester.engine.models import Job
from harvester.kernel.actor import Actor, system
from harvester.kernel.errors import Conflict, InvalidInput
from harvester.ops.models import Alert, AuditEvent
from harvester.runs.jobs import CLOSE_ORPHANS
from harvester.runs.models import Run, RunPart
from harvester.scraping import adapters, alerts
from harvester.scraping.jobs import JUDGE
from harvester.scraping.models import AdapterState, ScrapeBatch, ScrapeTarget
from harvester.scraping.verbs import runs as verbs
from harvester.scraping.verbs import targets as pages

pytestmark = pytest.mark.usefixtures("database")
ADA = Actor(kind="person", id="ada", name="Ada")


def offers(count, price="1{}.{:02}", first=0):
    """Offers of different products and prices."""
    return [offer(price.format(n % 9, n), sku=f"S-{n}") for n in range(first, first + count)]


def raised(count, factor):
    return [offer(f"{(10 + n) * factor}.00", sku=f"S-{n}") for n in range(count)]


def batches(source) -> list[tuple]:
    found = ScrapeBatch.objects.filter(source=source).order_by("pk")
    return list(found.values_list("attempts", "new_attempts", "failures", "is_refused"))


def test_offers_wait_until_twenty_attempts_are_there():
    source = shop(25)
    begun = begin(source)
    for part, found in zip(begun[:19], offers(19), strict=True):
        end(part, found=found)
    assert (prices(source), batches(source)) == ([], [])
    end(begun[19], found=offers(1, first=19)[0])
    assert (len(prices(source)), batches(source)) == (20, [(20, 20, 0, False)])
    for part, found in zip(begun[20:24], offers(4, first=20), strict=True):
        end(part, found=found)
    assert len(prices(source)) == 20
    end(begun[24], found=offers(1, first=24)[0])
    assert (len(prices(source)), batches(source)) == (25, [(20, 20, 0, False), (20, 5, 0, False)]), "the run has ended"
    run = Run.objects.get()
    assert (run.outcome, figures(run).prices_written, figures(run).products_new) == ("PROMOTED", 25, 25)


def test_a_batch_may_span_runs_and_each_run_gets_its_own_prices():
    source = shop(24)
    every = targets(source)
    first, second = begin(source, every[:12]), begin(source, every[12:])
    found = offers(24)
    for place in range(10):
        end(first[place], found=found[place])
        end(second[place], found=found[place + 12])
    assert batches(source) == [(20, 20, 0, False)]
    runs = [Run.objects.get(pk=parts[0].run_id) for parts in (first, second)]
    assert [figures(run).prices_written for run in runs] == [10, 10]
    assert rows("SELECT run_no, count(*) FROM prices GROUP BY 1 ORDER BY 1") == [(run.no, 10) for run in runs]


def test_the_end_of_one_run_judges_what_waits_of_the_others_too():
    source = shop(8)
    every = targets(source)
    first, second = begin(source, every[:4]), begin(source, every[4:])
    found = offers(8)
    for place in range(3):
        end(first[place], found=found[place])
    for place in range(4):
        end(second[place], found=found[place + 4])
    assert batches(source) == [(7, 7, 0, False)]
    assert Run.objects.get(pk=first[0].run_id).status == "RUNNING"


def test_a_rest_is_judged_15_minutes_after_its_last_outcome():
    source = shop(3)
    begun = begin(source)
    for part, found in zip(begun[:2], offers(2), strict=True):
        end(part, found=found)
    enqueue(JUDGE)
    run_until_idle(queues=("maintenance",))
    assert prices(source) == [], "it is not time"
    old = catalog.now() - timedelta(minutes=16)
    RunPart.objects.filter(pk=begun[0].pk).update(ended_at=old)
    enqueue(JUDGE)
    run_until_idle(queues=("maintenance",))
    assert prices(source) == [], "the last outcome counts"
    RunPart.objects.filter(pk=begun[1].pk).update(ended_at=old)
    enqueue(JUDGE)
    run_until_idle(queues=("maintenance",))
    assert len(prices(source)) == 2
    assert Run.objects.get().status == "RUNNING"


def test_failures_of_small_runs_count_after_twenty_of_them():
    source = shop(5)
    for _ in range(3):
        read_all(source, ["TITLE_NOT_FOUND"] * 5)
    assert (state_of(source).failed_batches, state_of(source).uncounted) == (0, 15)
    read_all(source, ["TITLE_NOT_FOUND"] * 5)
    state = state_of(source)
    assert (state.failed_batches, state.uncounted, state.enabled) == (1, 0, True)
    assert [size for size, *_ in batches(source)] == [5, 10, 15, 20]
    for _ in range(3):
        read_all(source, ["TITLE_NOT_FOUND"] * 5)
    assert state_of(source).enabled, "earlier attempts help to judge and count once"
    read_all(source, ["TITLE_NOT_FOUND"] * 5)
    state = state_of(source)
    assert (state.enabled, state.disabled_reason, state.disabled_by) == (False, "DRIFT_DETECTED", "scraping")


def test_one_bad_batch_puts_its_offers_into_quarantine_and_raises_an_alert_that_a_good_one_ends():
    source = shop(20)
    run = read_all(source, [*offers(9), *["PRICE_NOT_FOUND"] * 11])
    assert (run.outcome, prices(source), figures(run).batches_refused) == ("QUARANTINED", [], 1)
    assert waiting_entries(source) == ["DRIFT_DETECTED"] * 9
    assert (open_alerts(), state_of(source).enabled) == ([alerts.BATCH_REFUSED], True)
    [finding] = [item for item in run.verdict if item["holds"]]
    assert (finding["gate"], finding["figures"]["failures"]) == ("DRIFT", 11)
    assert outcomes(run).count("DRIFT_DETECTED") == 9
    good = read_all(source, offers(20))
    assert (good.outcome, len(prices(source)), waiting_entries(source), open_alerts()) == ("PROMOTED", 20, [], [])
    assert state_of(source).failed_batches == 0


def test_two_bad_batches_in_a_row_switch_the_adapter_off_and_cancel_what_is_open():
    source = shop(45)
    begun = begin(source)
    for part in begun[:39]:
        end(part, "TITLE_NOT_FOUND")
    waiting = Job.objects.filter(kind="scraping.page", state="pending").count()
    end(begun[39], "TITLE_NOT_FOUND")
    state = state_of(source)
    assert (state.enabled, state.disabled_reason) == (False, "DRIFT_DETECTED")
    [alert] = Alert.objects.filter(kind=alerts.ADAPTER_DISABLED, resolved_at=None)
    assert alert.severity == "critical"
    open_jobs = Job.objects.filter(pk__in=[part.job_id for part in begun[40:]], state="pending")
    assert (waiting, open_jobs.count()) == (45, 0)
    enqueue(CLOSE_ORPHANS)
    run_until_idle(queues=("maintenance",))
    run = Run.objects.get()
    assert (run.status, outcomes(run).count("CANCELLED")) == ("SUCCEEDED", 5)
    event = AuditEvent.objects.get(verb="SCRAPE_ADAPTER_DISABLED")
    assert (event.actor_kind, event.detail["reason"]) == ("system", "DRIFT_DETECTED")


def test_a_good_batch_between_two_bad_ones_keeps_the_adapter_on():
    source = shop(20)
    for ends in (["EMPTY_PAGE"] * 20, offers(20), ["EMPTY_PAGE"] * 20):
        read_all(source, ends)
    assert (state_of(source).enabled, state_of(source).failed_batches) == (True, 1)


def test_two_batches_with_a_price_of_zero_switch_the_adapter_off():
    source = shop(20)
    read_all(source, [*offers(19), "ZERO_PRICE_EXTRACTED"])
    assert (state_of(source).enabled, open_alerts()) == (True, [alerts.ZERO_PRICE])
    assert len(prices(source)) == 19, "the others are right"
    read_all(source, [*offers(19), "ZERO_PRICE_EXTRACTED"])
    assert (state_of(source).enabled, state_of(source).disabled_reason) == (False, "DRIFT_DETECTED")


def test_batches_without_a_change_are_not_empty():
    source = shop(20)
    for _ in range(3):
        read_all(source, ["NOT_MODIFIED"] * 20)
    assert (state_of(source).enabled, state_of(source).empty_batches) == (True, 0)


def test_recovery_enabling_counts_from_zero_and_asks_for_a_check():
    source = shop(20)
    for _ in range(2):
        read_all(source, ["TITLE_NOT_FOUND"] * 20)
    with pytest.raises(Conflict, match="No run"):
        adapters.confirm_check(ADA, source.pk)
    enabled = adapters.enable(ADA, source.pk)
    assert (enabled.enabled, enabled.check_next_run, enabled.failed_batches, enabled.recent) == (True, True, 0, [])
    assert alerts.ADAPTER_DISABLED not in open_alerts()
    with pytest.raises(Conflict, match="has not been read"):
        adapters.confirm_check(ADA, source.pk)
    # The failures before are not held against the first pages afterwards.
    run = read_all(source, offers(20))
    assert (run.outcome, len(prices(source))) == ("PROMOTED", 20)
    assert state_of(source).check_run_no == run.no
    read_all(source, offers(20))
    assert state_of(source).check_run_no == run.no, "the first run is to be checked"
    confirmed = adapters.confirm_check(ADA, source.pk)
    assert (confirmed.check_next_run, confirmed.check_run_no) == (False, None)
    verbs = list(AuditEvent.objects.filter(actor_id="ada").order_by("id").values_list("verb", flat=True))
    assert verbs == ["SCRAPE_ADAPTER_ENABLED", "SCRAPE_RUN_CHECKED"]
    with pytest.raises(Conflict, match="enabled"):
        adapters.enable(ADA, source.pk)


def test_people_switch_an_adapter_off_for_one_source_only():
    source, other = shop(2), shop(2)
    begin(source)
    others = begin(other)
    off = adapters.disable(ADA, source.pk, reason="TOS_VIOLATION", note="They asked us to stop.")
    assert (off.enabled, off.disabled_reason, off.disabled_by) == (False, "TOS_VIOLATION", "Ada")
    assert not AdapterState.objects.filter(source=other).exists()
    assert Job.objects.filter(kind="scraping.page", state="pending").count() == 2
    assert {part.job_id for part in others} == set(
        Job.objects.filter(state="pending", kind="scraping.page").values_list("pk", flat=True)
    )
    for given in ({"reason": "DRIFT_DETECTED", "note": "x"}, {"reason": "MANUAL", "note": " "}):
        with pytest.raises(InvalidInput):
            adapters.disable(ADA, source.pk, **given)
    with pytest.raises(Conflict):
        adapters.disable(ADA, source.pk, reason="TOS_VIOLATION", note="again")


def test_what_was_read_before_a_stop_because_of_the_terms_is_not_written():
    source = shop(2)
    first, second = begin(source)
    end(first, found=offers(1)[0])
    adapters.disable(ADA, source.pk, reason="TOS_VIOLATION", note="They asked us to stop.")
    end(second, "CANCELLED")
    assert (prices(source), waiting_entries(source)) == ([], [])
    assert (outcomes(Run.objects.get()), Run.objects.get().outcome) == (["CANCELLED"] * 2, "EMPTY")


def test_what_is_left_of_a_run_after_its_adapter_was_switched_off_waits_in_quarantine():
    source = shop(43)
    begun = begin(source)
    for part in begun[:40]:
        end(part, "TITLE_NOT_FOUND")
    for part, found in zip(begun[40:], offers(3), strict=True):
        end(part, found=found)
    assert (prices(source), waiting_entries(source)) == ([], ["DRIFT_DETECTED"] * 3)


def test_five_products_with_one_price_refuse_their_batch():
    source = shop(6)
    run = read_all(source, [*(offer("9.99", sku=f"S-{n}") for n in range(5)), offer("1.00", sku="S-9")])
    assert (run.outcome, prices(source), waiting_entries(source)) == ("QUARANTINED", [], ["SAME_VALUE"] * 6)
    assert open_alerts() == [alerts.BATCH_REFUSED]


def test_five_pages_with_one_title_refuse_their_batch():
    source = shop(5)
    run = read_all(source, [offer(f"{n}.99", sku=f"S-{n}", title="Just a moment") for n in range(5)])
    assert (run.outcome, prices(source)) == ("QUARANTINED", [])


def test_many_prices_that_moved_refuse_their_batch_and_no_second_look_writes_them():
    source = shop(20)
    read_all(source, raised(20, 1))
    run = read_all(source, [*raised(5, 3), *raised(20, 1)[5:]])
    assert (run.outcome, len(prices(source))) == ("QUARANTINED", 20)
    assert waiting_entries(source) == ["BULK_MOVE"] * 20
    assert rows("SELECT count(*) FROM scrape_targets WHERE recheck_at IS NOT NULL OR waiting IS NOT NULL") == [(0,)]


def test_a_few_prices_that_moved_wait_and_the_others_are_written():
    source = shop(20)
    read_all(source, raised(20, 1))
    cheaper = [offer(f"{10 + n - 1}.50", sku=f"S-{n}") for n in range(20)]
    run = read_all(source, [*raised(4, 3), *cheaper[4:]])
    assert (run.outcome, len(prices(source))) == ("PROMOTED", 36)
    assert rows("SELECT count(*) FROM scrape_targets WHERE recheck_reason = 'PRICE_MOVE'") == [(4,)]


def test_unusual_rates_raise_an_alert_once_it_is_known_what_is_usual():
    source = shop(20)
    for _ in range(4):
        read_all(source, offers(20))
        assert open_alerts() == []
        AdapterState.objects.filter(source=source).update(baseline_updated_at=None)
    read_all(source, [*offers(17), *["TITLE_NOT_FOUND"] * 3])
    assert open_alerts() == [alerts.UNUSUAL]
    state = state_of(source)
    assert (float(state.baseline_failure_rate), float(state.baseline_yield_rate), state.baseline_sample_size) == (
        0,
        1,
        4,
    )
    assert len(prices(source)) == 20, "unchanged offers write no price, and nothing is refused"
    read_all(source, offers(20))
    assert open_alerts() == []


def test_small_and_refused_batches_do_not_say_what_is_usual():
    source = shop(20)
    read_all(source, ["TITLE_NOT_FOUND"] * 20)
    for _ in range(4):
        catalog.fetch(
            "INSERT INTO scrape_batches (source_id, adapter_id, adapter_version, run_no, judged_at, attempts, "
            "new_attempts, failures, offers, zero_prices, verdict, is_refused) "
            "SELECT source_id, adapter_id, '1', run_no, judged_at, 19, 19, 0, 19, 0, '[]', false FROM scrape_batches "
            "ORDER BY id LIMIT 1"
        )
    read_all(source, offers(20))
    assert state_of(source).baseline_sample_size == 0


def test_of_two_pages_of_one_product_the_older_page_leads_and_the_other_writes_nothing():
    source = shop(2)
    first, second = begin(source)
    end(first, found=offer("10.00", sku="A"))
    end(second, found=offer("11.00", sku="A"), after=1)
    assert prices(source) == [10.00]
    assert outcomes(Run.objects.get()) == ["OFFER", "DUPLICATE_WITHIN_RUN"]
    first_target, second_target = targets(source)
    assert second_target.last_status == "DUPLICATE_WITHIN_RUN"
    assert first_target.url in second_target.last_detail


def test_the_page_that_leads_a_product_leads_in_later_runs_too_whatever_is_read_last():
    source = shop(2)
    first, second = targets(source)
    end(begin(source, [first])[0], found=offer("10.00", sku="A"))
    assert end(begin(source, [second])[0], found=offer("12.00", sku="A"), after=1) == "DUPLICATE_WITHIN_RUN"
    end(begin(source, [first])[0], found=offer("10.00", sku="A"), after=2)
    assert prices(source) == [10.00]


def test_another_page_takes_over_when_the_one_that_leads_is_paused():
    source = shop(2)
    first, second = targets(source)
    end(begin(source, [first])[0], found=offer("10.00", sku="A"))
    type(first).objects.filter(pk=first.pk).update(status="PAUSED")
    assert end(begin(source, [second])[0], found=offer("12.00", sku="A"), after=1) == "OFFER"
    assert prices(source) == [10.00, 12.00]


@pytest.mark.parametrize("way", ["gone", "gone and then not reachable", "deleted", "disabled", "broken"])
def test_another_page_takes_over_when_the_one_that_leads_is_out_of_use(way):
    source = shop(2)
    first, second = targets(source)
    end(begin(source, [first])[0], found=offer("10.00", sku="A"))
    assert end(begin(source, [second])[0], found=offer("12.00", sku="A"), after=1) == "DUPLICATE_WITHIN_RUN"
    if way.startswith("gone"):
        end(begin(source, [first])[0], "GONE", after=2)
        assert end(begin(source, [second])[0], found=offer("12.00", sku="A"), after=3) == "DUPLICATE_WITHIN_RUN"
        end(begin(source, [first])[0], "GONE", after=70)
        if way != "gone":
            end(begin(source, [first])[0], "NETWORK", after=71)
    elif way == "deleted":
        pages.delete_target(ADA, first.pk)
    elif way == "disabled":
        pages.update_target(ADA, first.pk, enabled=False)
    else:
        for minute in range(2, 7):
            end(begin(source, [first])[0], "TITLE_NOT_FOUND", after=minute)
    assert end(begin(source, [second])[0], found=offer("12.00", sku="A"), after=80) == "OFFER"
    assert (prices(source), shown()) == ([10.00, 12.00], [12.00])


def test_a_page_that_is_gone_does_not_end_the_offer_of_the_page_that_took_over():
    source = shop(2)
    first, second = targets(source)
    end(begin(source, [first])[0], found=offer("10.00", sku="A"))
    end(begin(source, [first])[0], "GONE", after=2)
    end(begin(source, [first])[0], "GONE", after=70)
    assert shown() == []
    end(begin(source, [second])[0], found=offer("12.00", sku="A"), after=80)
    end(begin(source, [first])[0], "GONE", after=90)
    assert shown() == [12.00]
    end(begin(source, [first])[0], found=offer("10.00", sku="A"), after=100)
    assert end(begin(source, [second])[0], found=offer("12.00", sku="A"), after=110) == "DUPLICATE_WITHIN_RUN"
    end(begin(source, [first])[0], "OOS_NO_PRICE", after=120)
    assert shown() == [], "the page that came back leads again"


def test_a_redesigned_shop_is_one_alert_until_a_run_can_read_most_of_its_pages_again():
    source = shop(9)
    read_all(source, [*offers(8), "NO_AGREEMENT"])
    assert open_alerts() == []
    read_all(source, [*["NO_AGREEMENT"] * 4, *offers(5, first=4)])
    assert open_alerts() == [], "four pages say nothing about the shop"
    run = read_all(source, [*["NO_AGREEMENT"] * 5, *["NOT_MODIFIED"] * 3, "GONE"])
    assert open_alerts() == [alerts.NO_AGREEMENT]
    read_all(source, ["NO_AGREEMENT"] * 9)
    alert = Alert.objects.get(resolved_at=None)
    assert (alert.times, alert.severity, alert.detail["pages"], alert.detail["read"]) == (2, "warning", 9, 9)
    assert {"source_id": str(source.pk), "run_no": run.no + 1}.items() <= alert.detail.items()
    assert "override" in alert.body
    assert "site file" in alert.body
    end(begin(source, targets(source)[:1])[0], found=offers(1)[0])
    assert open_alerts() == [alerts.NO_AGREEMENT], "one page says nothing about the shop either"
    read_all(source, [*offers(5), *["NO_AGREEMENT"] * 4])
    assert open_alerts() == []


def test_pages_that_never_had_an_offer_and_pages_that_were_not_read_are_no_redesign():
    source = shop(10)
    read_all(source, ["NO_AGREEMENT"] * 10)
    read_all(source, [*offers(5), *["NO_AGREEMENT"] * 5])
    read_all(source, [*["BLOCKED_BY_ROBOTS_TXT"] * 5, *["NO_AGREEMENT"] * 5])
    assert open_alerts() == []
    read_all(source, [*["NO_AGREEMENT"] * 5, *["BLOCKED_BY_ROBOTS_TXT"] * 5])
    assert open_alerts() == [alerts.NO_AGREEMENT]


def test_the_alert_of_a_redesigned_shop_ends_when_its_pages_are_deleted():
    source = shop(5)
    read_all(source, offers(5))
    read_all(source, ["NO_AGREEMENT"] * 5)
    first, *others = targets(source)
    type(first).objects.filter(pk__in=[each.pk for each in others]).delete()
    judge_alerts()
    assert open_alerts() == [alerts.NO_AGREEMENT]
    type(first).objects.filter(pk=first.pk).update(enabled=False)
    judge_alerts()
    assert open_alerts() == []


def judge_alerts() -> None:
    enqueue(JUDGE)
    run_until_idle(queues=("maintenance",))


def test_a_shop_that_gives_all_products_one_sku_writes_one_product_with_its_own_price():
    source = shop(20)
    read_all(source, [offer(f"{10 + n}.00", sku="SHOP", title=f"Tool {n}") for n in range(20)])
    assert prices(source) == [10.00]
    assert outcomes(Run.objects.get()) == ["OFFER", *["DUPLICATE_WITHIN_RUN"] * 19]


def test_totals_grow_by_the_outcome_that_a_page_has_in_the_end():
    source = shop(20)
    read_all(source, [*offers(9), *["PRICE_NOT_FOUND"] * 11])
    read_all(source, ["NETWORK"] * 20)
    found = rows("SELECT word, total FROM scrape_totals WHERE figure = 'outcome' ORDER BY word")
    assert found == [("DRIFT_DETECTED", 9), ("NETWORK", 20), ("PRICE_NOT_FOUND", 11)]


def test_a_rest_that_is_judged_twice_counts_once():
    source = shop(3)
    begun = begin(source)
    end(begun[0], found=offers(1)[0])
    judge_rest(source)
    judge_rest(source)
    assert batches(source) == [(1, 1, 0, False)]


def test_an_audit_event_belongs_to_its_write():
    source = shop(1)
    with pytest.raises(RuntimeError, match="stop"), transaction.atomic():
        adapters.disable(system("test"), source.pk, reason="MANUAL", note="for a moment")
        raise RuntimeError("stop")
    assert not AuditEvent.objects.filter(verb="SCRAPE_ADAPTER_DISABLED").exists()


def test_a_run_with_wrong_prices_is_ignored_and_the_prices_from_before_count_again():
    source = shop(2)
    found = [offer("10.00", sku="A"), offer("20.00", sku="B")]
    read_all(source, found)
    wrong = read_all(source, [offer("11.00", sku="A"), offer("21.00", sku="B")])
    ScrapeTarget.objects.filter(source=source).update(etag='"wrong"')
    assert shown() == [11.00, 21.00]
    assert verbs.ignore(ADA, wrong.pk, "prices in cents") == 2
    assert (shown(), differences()) == ([10.00, 20.00], [])
    assert {(each.etag, each.last_seen) for each in targets(source)} == {(None, None)}, "they are fetched in full again"
    read_all(source, [offer("11.00", sku="A"), offer("21.00", sku="B")])
    assert (shown(), differences()) == ([11.00, 21.00], []), "written whatever the ignored run had said"
    verbs.undo_ignore(ADA, wrong.pk)
    assert (shown(), differences()) == ([11.00, 21.00], [])
    with pytest.raises(Conflict, match="is not ignored"):
        verbs.undo_ignore(ADA, wrong.pk)
