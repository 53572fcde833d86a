"""A run that was approved by mistake and ignored: its file and its prices do not come back by themselves."""

from decimal import Decimal

import pytest
from tests.support.feed_world import OLGA
from tests.support.feeds import row
from tests.support.tables import rows
from tests.support.workers import run_until_idle

from harvester.catalog import corrections, offers
from harvester.feeds import change_detection, decisions, verbs
from harvester.kernel.errors import Conflict
from harvester.pipeline import promote
from harvester.runs.models import Run

pytestmark = pytest.mark.usefixtures("database")
ALL = range(100, 140)
#: Products of forty whose price is ten times too high: below and above the limits of the price-shock gate.
BELOW, ABOVE = 3, 30


def wrong(number):
    """Ten times the price, and another title and link."""
    price = f"{number // 10}.{number % 10}0"
    return row(number, Name=f"Wrong {number}", Url=f"https://shop.example/wrong/{number}", Price=price)


def gates_of(world, run):
    return [item["gate"] for item in world.figures(run).run.verdict if item["holds"]]


def state(world):
    """Everything that ignoring a run restores."""
    source = world.look()
    promoted = (source.last_promoted_run_no, source.last_promoted_count, source.last_promoted_hash)
    presence = rows(
        "SELECT p.identity_value, p.title, p.url, p.content_hash, o.amount, o.in_stock, o.seen_until, "
        "o.absence_accepted, w.words::text FROM offers o "
        "JOIN source_products p ON p.source_id = o.source_id AND p.id = o.product_id "
        "JOIN offer_words w ON w.source_id = o.source_id AND w.product_id = o.product_id ORDER BY 1"
    )
    return promoted, presence, world.shown()


def approved_by_mistake(world, numbers):
    """Only these products are in the file, at ten times their price; the run is held and approved."""
    world.put(*ALL)
    assert world.run().outcome == "PROMOTED"
    before = state(world)
    world.put(*map(wrong, numbers))
    held = world.run()
    assert held.outcome == "HELD"
    assert world.approve(held).state == "succeeded"
    assert world.shown()["S-100"] == ("Wrong 100", 10.0, True)
    return held, before


@pytest.mark.parametrize("share", [BELOW, ABOVE])
def test_the_whole_story_of_a_run_that_was_approved_by_mistake(world, share):
    bad, before = approved_by_mistake(world, ALL[:share])
    after = state(world)
    assert decisions.ignore(OLGA, bad.id, "prices in cents") == share
    assert state(world) == before, "prices, presence, content and figures are those from before the run"
    run_until_idle()

    same = world.run()
    assert (same.outcome, world.figures(same).skipped_reason) == ("SKIPPED", "UNCHANGED_IGNORED")
    assert state(world) == before

    world.put(*map(wrong, ALL[:share]), *ALL[share:], 200)
    repeated = world.run()
    assert repeated.outcome == "HELD", "another file, with the same wrong prices"
    assert gates_of(world, repeated) == ["REPEATS_IGNORED"] if share == BELOW else ["PRICE_SHOCK", "REPEATS_IGNORED"]
    assert world.figures(repeated).active_count_before == 40
    assert world.shown() == before[-1]
    world.reject(repeated)

    world.put(*map(wrong, ALL[:share]))
    same = world.run()
    assert world.figures(same).skipped_reason == "UNCHANGED_IGNORED", "nothing else was promoted since"

    decisions.undo_ignore(OLGA, bad.id)
    assert state(world) == after
    decisions.ignore(OLGA, bad.id, "prices in cents after all")
    assert state(world) == before

    world.put(*ALL, 201)
    fixed = world.run()
    assert (fixed.outcome, gates_of(world, fixed)) == ("PROMOTED", [])
    assert world.figures(fixed).active_count_before == 40
    assert world.shown() == before[-1] | {"S-201": ("Thing 201", 2.01, True)}

    world.put(*map(wrong, ALL[:share]), *ALL[share:])
    again = world.run()
    assert (again.outcome, "REPEATS_IGNORED" in gates_of(world, again)) == ("HELD", True)
    world.check()


def test_the_same_three_products_are_missed_again_as_before(world):
    """The story of the issue: with the file's hash refused or not, the gates compare with forty products."""
    bad, _ = approved_by_mistake(world, ALL[:3])
    decisions.ignore(OLGA, bad.id, "prices in cents")
    verbs.run_now(OLGA, world.feed.id, force=True)
    world.hurry()
    run = Run.objects.order_by("-no").first()
    figures = world.figures(run)
    assert (run.outcome, figures.active_count_before, figures.would_expire_count) == ("HELD", 40, 37)
    assert gates_of(world, run) == ["EXPIRY_SPIKE", "REPEATS_IGNORED"]


def another_parser(world, monkeypatch):
    monkeypatch.setattr(change_detection, "PARSER_VERSION", change_detection.PARSER_VERSION + 1)


def another_setting(world, monkeypatch):
    verbs.update(OLGA, world.feed.id, {"max_rows": 1_000_000})


def a_correction(world, monkeypatch):
    corrections.create(
        OLGA, scope="SOURCE", action="MULTIPLIER", multiplier="2", reason="in halves", source_id=world.source.id
    )


@pytest.mark.parametrize("change", [another_parser, another_setting, a_correction])
def test_the_refusal_of_a_file_outlives_what_clears_change_detection(world, monkeypatch, change):
    bad, _ = approved_by_mistake(world, ALL[:3])
    decisions.ignore(OLGA, bad.id, "prices in cents")
    change(world, monkeypatch)
    assert world.figures(world.run()).skipped_reason == "UNCHANGED_IGNORED"


def test_a_correction_during_the_hold_does_not_let_the_file_back_in(world, monkeypatch):
    world.put(*ALL)
    world.run()
    world.put(*map(wrong, ALL[:3]))
    held = world.run()
    a_correction(world, monkeypatch)
    world.approve(held)
    assert world.look().feed.last_content_hash is None, "the file was forgotten"
    decisions.ignore(OLGA, held.id, "prices in cents")
    assert world.figures(world.run()).skipped_reason == "UNCHANGED_IGNORED"


def test_a_skipped_file_of_an_ignored_run_does_not_count_as_seen(world):
    world.change(unchanged_means_seen=True)
    bad, _ = approved_by_mistake(world, ALL[:3])
    decisions.ignore(OLGA, bad.id, "prices in cents")
    before = world.look().last_promoted_at
    assert world.run().outcome == "SKIPPED"
    assert world.look().last_promoted_at == before


def repeat(world, back, of=10):
    """Ten prices were changed by an ignored run, and the next file has some of them again."""
    world.put(*ALL)
    world.run()
    world.put(*(row(n, Price="77.00") for n in ALL[:of]), *ALL[of:])
    bad = world.run()
    assert bad.outcome == "PROMOTED", "ten of forty are below the least number of the price-shock gate"
    decisions.ignore(OLGA, bad.id, "wrong")
    world.put(*(row(n, Price="77.00") for n in ALL[:back]), *ALL[back:], 250)
    return bad, world.run()


@pytest.mark.parametrize(("back", "outcome"), [(5, "PROMOTED"), (6, "HELD")])
def test_more_than_half_of_the_prices_of_an_ignored_run_hold_a_later_one(world, back, outcome):
    bad, run = repeat(world, back)
    findings = [item for item in world.figures(run).run.verdict if item["gate"] == "REPEATS_IGNORED"]
    assert [(run.outcome, finding["holds"]) for finding in findings] == [(outcome, outcome == "HELD")]
    assert findings[0]["figures"] == {
        "repeated_prices": back,
        "returning_prices": back,
        "ignored_prices": 10,
        "ignored_run_no": bad.no,
        "share": back / 10,
        "threshold_share": 0.5,
    }


def test_prices_that_come_back_in_two_steps_are_noticed_at_the_second(world):
    repeat(world, 5)
    world.put(*(row(n, Price="77.00") for n in ALL[:6]), *ALL[6:])
    assert gates_of(world, world.run()) == ["REPEATS_IGNORED"]


def test_prices_of_products_that_were_new_in_the_ignored_run_count_too(world):
    world.put(*ALL)
    world.run()
    new = [row(n, Price="77.00") for n in (200, 201, 202)]
    world.put(*ALL, *new)
    bad = world.run()
    decisions.ignore(OLGA, bad.id, "wrong")
    assert "S-200" not in world.shown()
    world.put(*ALL, *new[:2], 203)
    run = world.run()
    assert (run.outcome, gates_of(world, run)) == ("HELD", ["REPEATS_IGNORED"])
    world.put(*ALL, 200, 201, 202)
    assert world.run().outcome == "PROMOTED", "the same products at other prices"
    assert world.shown()["S-200"][1] == 2.00


def test_prices_that_the_ignored_run_only_confirmed_or_that_differ_in_stock_do_not_count(world):
    world.put(*ALL)
    world.run()
    rows_of_bad = [row(100, Price="77.00"), *(row(n, Availability="out of stock") for n in ALL[1:])]
    world.put(*rows_of_bad)
    bad = world.run()
    assert world.figures(bad).prices_written == 40
    decisions.ignore(OLGA, bad.id, "wrong")
    assert rows("SELECT amount FROM ignored_prices") == [(Decimal("77.0000"),)]
    world.put(*(row(n, Availability="out of stock") for n in ALL))
    assert world.run().outcome == "PROMOTED"


def test_another_currency_is_another_price(world):
    world.put(*ALL)
    world.run()
    world.put(row(100, Price="77.00"), *ALL[1:])
    decisions.ignore(OLGA, world.run().id, "wrong")
    world.put(row(100, Price="77.00", Currency="EUR"), *ALL[1:])
    assert world.run().outcome == "PROMOTED"


def test_a_repeat_that_a_person_approves_is_not_held_again(world):
    _, held = repeat(world, 10)
    world.approve(held)
    assert world.shown()["S-100"][1] == 77.00
    for number in (300, 301):
        world.put(*(row(n, Price="77.00") for n in ALL[:10]), *ALL[10:], number)
        assert world.run().outcome == "PROMOTED"


def test_the_refusal_ends_when_another_file_is_promoted(world):
    """A file that only has other titles repeats no price; once a different file is shown, it is judged as any other."""
    world.put(*ALL)
    world.run()
    world.put(row(100, Name="Other"), *ALL[1:])
    bad = world.run()
    decisions.ignore(OLGA, bad.id, "wrong title")
    assert world.shown()["S-100"][0] == "Thing 100"
    assert world.figures(world.run()).skipped_reason == "UNCHANGED_IGNORED"
    world.put(*ALL, 200)
    assert world.run().outcome == "PROMOTED"
    world.put(row(100, Name="Other"), *ALL[1:])
    assert world.run().outcome == "PROMOTED"


def test_of_a_run_that_is_not_the_newest_only_prices_are_hidden(world):
    world.put(*ALL)
    world.run()
    world.put(row(100, Name="Wrong", Price="77.00"), *ALL[1:39])
    old = world.run()
    world.put(row(100, Name="Wrong", Price="77.00"), *ALL[1:39], 200)
    newest = world.run()
    missing = rows("SELECT product_id, seen_until FROM offers WHERE seen_until IS NOT NULL")
    decisions.ignore(OLGA, old.id, "wrong")
    assert world.shown()["S-100"] == ("Wrong", 1.00, True)
    assert world.look().last_promoted_run_no == newest.no
    assert rows("SELECT product_id, seen_until FROM offers WHERE seen_until IS NOT NULL") == missing
    run = world.run()
    assert (run.outcome, gates_of(world, run)) == ("HELD", ["REPEATS_IGNORED"]), "the newest file has its price too"
    world.reject(run)
    world.put(row(100, Name="Wrong", Price="77.00"), *ALL[1:39])
    run = world.run()
    assert (run.artifact_hash, run.outcome) == (old.artifact_hash, "HELD"), "its file is judged like any other"


def test_two_runs_are_ignored_one_after_the_other_and_undone_in_any_order(world):
    world.put(*ALL)
    world.run()
    first = state(world)
    world.put(row(100, Price="7.00"), *ALL[1:38])
    second = world.run()
    after_second = state(world)
    decisions.ignore(OLGA, second.id, "wrong")
    world.put(row(100, Price="8.00"), *ALL[1:36], 200)
    third = world.run()
    after_third = world.shown()
    assert third.outcome == "PROMOTED"
    with pytest.raises(Conflict):
        # Nothing newer than the second run is known of the products that only it had ... which the third lacks.
        decisions.ignore(OLGA, second.id, "wrong again")
    decisions.ignore(OLGA, third.id, "wrong too")
    assert state(world) == first
    decisions.undo_ignore(OLGA, third.id)
    assert world.shown() == after_third
    decisions.ignore(OLGA, third.id, "wrong too")
    decisions.undo_ignore(OLGA, second.id)
    assert world.shown()["S-100"] == after_second[-1]["S-100"]
    assert offers.differences() == []


def test_lost_time_is_made_up_for_in_what_is_restored(world):
    world.put(*ALL)
    world.run()
    world.put(*ALL[:38])
    world.run()
    world.pass_time(20)
    world.put(*map(wrong, ALL[:3]))
    held = world.run()
    world.pass_time(100)
    world.approve(held)
    decisions.ignore(OLGA, held.id, "prices in cents")
    assert len(world.shown()) == 40, "the clock stopped while the run was held"
    world.pass_time(27)
    assert len(world.shown()) == 40
    world.pass_time(2)
    assert world.shown() == {}, "48 hours after the last good run, by the source's clock"


def test_the_first_run_of_a_source_can_be_ignored(world):
    world.put(*ALL)
    run = world.run()
    decisions.ignore(OLGA, run.id, "not this shop")
    assert (world.shown(), world.look().last_promoted_run_no, world.look().last_promoted_count) == ({}, None, None)
    assert world.figures(world.run()).skipped_reason == "UNCHANGED_IGNORED"
    decisions.undo_ignore(OLGA, run.id)
    assert len(world.shown()) == 40


def test_links_follow_the_restored_content(world):
    world.put(*(row(n, Name=f"Acme Thing {n}") for n in ALL))
    world.run()
    run_until_idle()
    before = rows("SELECT source_product_id, evidence::text FROM product_links ORDER BY 1")
    world.put(*(row(n, Name=f"Other {n}") for n in ALL))
    bad = world.run()
    run_until_idle()
    decisions.ignore(OLGA, bad.id, "titles of another shop")
    run_until_idle()
    assert rows("SELECT source_product_id, evidence::text FROM product_links ORDER BY 1") == before


# Corrections of prices that runs brought in.


def test_a_correction_ends_when_the_partner_fixes_the_file(world):
    """13.50 came as 135.00 and was multiplied by 0.1; the fixed file must not be shown as 1.35."""
    world.put(row(100, Price="12.00"), 101)
    world.run()
    world.put(row(100, Price="135.00"), 101)
    assert world.run().outcome == "PROMOTED"
    corrections.create(
        OLGA, scope="SOURCE", action="MULTIPLIER", multiplier="0.1", reason="in dimes", source_id=world.source.id
    )
    assert world.shown()["S-100"][1] == 13.50
    world.put(row(100, Price="135.00", Availability="out of stock"), 101, 102)
    world.run()
    shown = world.shown()
    assert (shown["S-100"][1], shown["S-102"][1]) == (13.50, 1.02), "the same price is corrected, a new one is not"
    world.put(row(100, Price="13.50"), 101, 102)
    world.run()
    assert world.shown()["S-100"][1] == 13.50
    read = rows("SELECT amount::float FROM readable_prices WHERE run_no > 0 AND raw_amount > 2 ORDER BY observed_at")
    assert read == [(12.0,), (13.5,), (13.5,), (13.5,)], "older prices are read as they were"
    world.check()


def test_only_offers_whose_new_price_may_be_corrected_are_recomputed(world, monkeypatch):
    """A correction that has ended stays valid until it is revoked, and must not slow every later run down."""
    recomputed = []

    def recompute(source_id, products):
        names = rows("SELECT identity_value FROM source_products WHERE id = ANY (%s) ORDER BY 1", list(products))
        recomputed.extend(name for (name,) in names)
        offers.recompute(source_id, products)

    def run(*prices):
        """Promote a file in which S-100, S-101 and so on have these prices; return the offers that were recomputed."""
        recomputed.clear()
        world.put(*(row(number, Price=price) for number, price in enumerate(prices, 100)))
        assert world.run().outcome == "PROMOTED"
        assert offers.differences() == []
        return recomputed

    monkeypatch.setattr(promote, "recompute", recompute)
    assert run("10.00", "20.00", "30.00") == []
    double = {"scope": "SOURCE", "action": "MULTIPLIER", "multiplier": 2, "source_id": world.source.id}
    corrections.create(OLGA, reason="half of the price", **double)
    assert run("10.00", "21.00", "30.00") == [], "one is still corrected and unchanged, one is not corrected any more"
    assert [price for _, (_, price, _) in sorted(world.shown().items())] == [20.00, 21.00, 60.00]
    assert run("10.00", "22.00", "31.00") == [], "a correction that has ended does not apply to a later price"
    assert run("11.00", "20.00", "32.00") == ["S-101"], "the corrected amount again: looked at, and not corrected"
    assert [price for _, (_, price, _) in sorted(world.shown().items())] == [11.00, 20.00, 32.00]
