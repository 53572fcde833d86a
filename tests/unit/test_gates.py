"""Each gate at its edges: the tables are the arithmetic of the rules."""

import dataclasses

import pytest

from harvester.feeds.gates import (
    BASELINE_SHRUNK,
    EXPIRY_SPIKE,
    GATES,
    PRICE_SHOCK,
    REJECT_SHARE,
    REPEATS_IGNORED,
    URL_HASH,
    RunFacts,
    Thresholds,
)
from harvester.kernel.errors import InvalidInput
from harvester.runs.gates import judge

#: A run that no gate holds.
GOOD = RunFacts(
    rows_read=1_000,
    rows_rejected=0,
    products=1_000,
    url_hash_products=0,
    known_products=1_000,
    shocked_products=0,
    active_before=1_000,
    active_seen=1_000,
    promoted_before=1_000,
)
DEFAULTS = Thresholds()


def facts(**changed):
    return dataclasses.replace(GOOD, **changed)


def missing(count, of):
    return facts(active_before=of, active_seen=of - count)


def test_a_good_run_passes_every_gate():
    verdict = judge(GATES, GOOD, DEFAULTS)
    assert verdict.passed
    assert [finding.gate for finding in verdict.findings] == [
        "EXPIRY_SPIKE",
        "BASELINE_SHRUNK",
        "URL_HASH",
        "PRICE_SHOCK",
        "REPEATS_IGNORED",
        "REJECT_SHARE",
    ]


def test_the_defaults_are_those_of_the_rules():
    assert dataclasses.asdict(DEFAULTS) == {
        "expiry_share": 0.30,
        "expiry_least": 10,
        "expiry_most": 500,
        "url_hash_share": 0.50,
        "url_hash_most": 1_000,
        "accepts_url_identity": False,
        "shock_move": 0.50,
        "shock_share": 0.20,
        "shock_least": 20,
        "reject_share": 0.20,
        "reject_least": 20,
    }


@pytest.mark.parametrize(
    ("count", "of", "holds"),
    [
        (0, 0, False),  # nothing is on sale: nothing can go
        (0, 100, False),
        (29, 100, False),
        (30, 100, False),  # 30 % is not more than 30 %
        (31, 100, True),
        (9, 9, False),  # all of them, and yet fewer than ten
        (10, 10, True),
        (9, 10, False),
        (10, 33, True),  # 30.3 %
        (10, 34, False),  # 29.4 %
        (499, 1_000_000, False),
        (500, 1_000_000, True),  # so many are too many whatever their share
        (501, 1_000_000, True),
        (499, 1_663, True),  # 30.006 %
        (499, 1_664, False),  # 29.99 %
    ],
)
def test_expiry_spike(count, of, holds):
    assert EXPIRY_SPIKE.find(missing(count, of), DEFAULTS).holds is holds


def test_more_seen_than_there_were_counts_as_none_missing():
    finding = EXPIRY_SPIKE.find(facts(active_before=10, active_seen=12), DEFAULTS)
    assert not finding.holds
    assert finding.figures["missing"] == 0
    assert finding.figures["share"] == 0


def test_a_first_run_passes_whatever_it_has():
    first = facts(active_before=0, active_seen=0, promoted_before=None, known_products=0)
    assert judge(GATES, first, DEFAULTS).passed


@pytest.mark.parametrize(
    ("before", "products", "holds"),
    [
        (None, 1, False),  # no run was promoted before
        (0, 1, False),
        (100, 71, False),
        (100, 70, False),
        (100, 69, True),
        (20, 11, False),  # 45 %, but nine only
        (20, 10, True),
        (100, 200, False),  # more than before is nothing less
        (100_000, 99_501, False),
        (100_000, 99_500, True),
    ],
)
def test_baseline_shrunk_when_nothing_is_active(before, products, holds):
    found = facts(active_before=0, active_seen=0, promoted_before=before, products=products)
    assert BASELINE_SHRUNK.find(found, DEFAULTS).holds is holds


def test_the_baseline_does_not_count_while_anything_is_active():
    assert not BASELINE_SHRUNK.find(
        facts(active_before=1, active_seen=1, promoted_before=1_000, products=1), DEFAULTS
    ).holds


@pytest.mark.parametrize(
    ("count", "products", "holds"),
    [
        (0, 0, False),
        (0, 10, False),
        (1, 2, False),  # half is not more than half
        (2, 3, True),  # there is no least number: a small feed of addresses is held too
        (1, 1, True),
        (50, 100, False),
        (51, 100, True),
        (1_000, 1_000_000, False),
        (1_001, 1_000_000, True),
    ],
)
def test_url_hash(count, products, holds):
    assert URL_HASH.find(facts(url_hash_products=count, products=products), DEFAULTS).holds is holds


def test_a_feed_may_accept_addresses_as_identity():
    finding = URL_HASH.find(facts(url_hash_products=1_000), Thresholds(accepts_url_identity=True))
    assert not finding.holds
    assert finding.reason.endswith("This feed accepts that.")


@pytest.mark.parametrize(
    ("count", "known", "holds"),
    [
        (0, 0, False),
        (19, 19, False),  # all of them, and yet fewer than twenty
        (20, 20, True),
        (20, 99, True),
        (20, 100, False),  # 20 % is not more than 20 %
        (21, 100, True),
        (21, 105, False),
    ],
)
def test_price_shock(count, known, holds):
    assert PRICE_SHOCK.find(facts(shocked_products=count, known_products=known), DEFAULTS).holds is holds


@pytest.mark.parametrize(
    ("repeated", "returning", "changed", "holds"),
    [
        (0, 0, 0, False),  # no run was ignored, or none that had changed a price
        (0, 0, 10, False),
        (1, 1, 2, False),  # half is not more than half
        (2, 2, 3, True),
        (1, 1, 1, True),
        (5, 5, 10, False),
        (6, 6, 10, True),
        (6, 1, 10, True),  # five came back before, and one more now
        (6, 0, 10, False),  # consumers see all of them already
    ],
)
def test_repeats_ignored(repeated, returning, changed, holds):
    found = facts(repeated_prices=repeated, returning_prices=returning, ignored_prices=changed, ignored_run_no=7)
    assert REPEATS_IGNORED.find(found, DEFAULTS).holds is holds


@pytest.mark.parametrize(
    ("count", "rows", "holds"),
    [
        (0, 0, False),
        (19, 19, False),
        (19, 20, False),
        (20, 20, True),
        (20, 99, True),
        (20, 100, False),
        (21, 100, True),
    ],
)
def test_reject_share(count, rows, holds):
    assert REJECT_SHARE.find(facts(rows_rejected=count, rows_read=rows), DEFAULTS).holds is holds


@pytest.mark.parametrize(
    ("gate", "found", "names"),
    [
        (EXPIRY_SPIKE, missing(31, 100), {"expiry_share": 0.31}),
        (EXPIRY_SPIKE, missing(31, 100), {"expiry_least": 32}),
        (EXPIRY_SPIKE, missing(500, 10_000), {"expiry_most": 501}),
        (BASELINE_SHRUNK, facts(active_before=0, active_seen=0, promoted_before=100, products=69), {"expiry_share": 1}),
        (URL_HASH, facts(url_hash_products=51, products=100), {"url_hash_share": 0.51}),
        (URL_HASH, facts(url_hash_products=1_001, products=10_000), {"url_hash_most": 1_001}),
        (PRICE_SHOCK, facts(shocked_products=21, known_products=100), {"shock_share": 0.21}),
        (PRICE_SHOCK, facts(shocked_products=21, known_products=100), {"shock_least": 22}),
        (REJECT_SHARE, facts(rows_rejected=21, rows_read=100), {"reject_share": 0.21}),
        (REJECT_SHARE, facts(rows_rejected=21, rows_read=100), {"reject_least": 22}),
    ],
)
def test_a_feed_may_set_each_threshold(gate, found, names):
    assert gate.find(found, DEFAULTS).holds
    assert not gate.find(found, Thresholds(**names)).holds


@pytest.mark.parametrize("share", [0.1, 0.29, 0.3, 0.57, 0.7])
def test_a_share_is_exact_at_its_edge(share):
    """Binary fractions would hold 29 of 100 with a threshold of 29 %."""
    edge = round(share * 1_000)
    most = Thresholds(expiry_share=share, expiry_most=10_000)
    assert not EXPIRY_SPIKE.find(missing(edge, 1_000), most).holds
    assert EXPIRY_SPIKE.find(missing(edge + 1, 1_000), most).holds


@pytest.mark.parametrize(
    ("found", "gate", "words"),
    [
        (missing(400, 1_000), "EXPIRY_SPIKE", "400 of 1,000 active products (40.0%) are not in the file."),
        (
            facts(active_before=0, active_seen=0, promoted_before=1_000, products=250),
            "BASELINE_SHRUNK",
            "the last promoted run had 1,000 products and this file has 250 (75.0% fewer)",
        ),
        (facts(url_hash_products=800), "URL_HASH", "800 of 1,000 products (80.0%) have no item ID or SKU"),
        (facts(shocked_products=500), "PRICE_SHOCK", "500 of 1,000 known products (50.0%) moved by more than 50.0%"),
        (
            facts(repeated_prices=6, returning_prices=6, ignored_prices=10, ignored_run_no=7),
            "REPEATS_IGNORED",
            "6 of the 10 prices (60.0%) that ignored run 7 had changed are in this file again; 6 of them are not live.",
        ),
        (facts(rows_rejected=300), "REJECT_SHARE", "300 of 1,000 rows (30.0%) were rejected."),
    ],
)
def test_a_finding_has_the_gates_name_and_says_why(found, gate, words):
    [finding] = judge(GATES, found, DEFAULTS).holding
    assert finding.gate == gate
    assert words in finding.reason


def test_all_gates_are_asked_even_if_the_first_one_holds():
    bad = facts(active_seen=0, url_hash_products=1_000, shocked_products=1_000, rows_rejected=900)
    verdict = judge(GATES, bad, DEFAULTS)
    assert not verdict.passed
    assert [finding.gate for finding in verdict.holding] == ["EXPIRY_SPIKE", "URL_HASH", "PRICE_SHOCK", "REJECT_SHARE"]
    assert len(verdict.as_json()) == len(GATES)


def test_what_is_kept_with_the_run_has_the_figures_and_their_thresholds():
    [kept] = [item for item in judge(GATES, missing(400, 1_000), DEFAULTS).as_json() if item["holds"]]
    assert kept["figures"] == {
        "missing": 400,
        "active_before": 1_000,
        "share": 0.4,
        "threshold_share": 0.30,
        "threshold_least": 10,
        "threshold_most": 500,
    }


@pytest.mark.parametrize("name", [field.name for field in dataclasses.fields(RunFacts)])
def test_a_negative_count_is_a_fault_of_the_counting(name):
    with pytest.raises(ValueError, match=name):
        facts(**{name: -1})


SHARES = ("expiry_share", "url_hash_share", "shock_share", "reject_share")
COUNTS = ("expiry_least", "expiry_most", "url_hash_most", "shock_least", "reject_least")


@pytest.mark.parametrize("name", [*SHARES, *COUNTS, "shock_move"])
def test_a_threshold_may_be_the_least_and_the_most_that_can_be_meant(name):
    for value in (0, 1 if name in SHARES else 10 if name == "shock_move" else 1_000_000_000):
        assert getattr(Thresholds(**{name: value}), name) == value


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("expiry_share", "0.3"),
        ("expiry_share", True),
        *((name, value) for name in SHARES for value in (-0.01, 1.01)),
        ("shock_move", -0.01),
        ("shock_move", 10.01),
        *((name, value) for name in COUNTS for value in (-1, 1_000_000_001)),
        ("expiry_least", 1.5),
        ("accepts_url_identity", 1),
    ],
)
def test_a_threshold_that_cannot_be_meant_is_refused_by_name(name, value):
    with pytest.raises(InvalidInput, match=name):
        Thresholds(**{name: value})
