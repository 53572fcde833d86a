"""Runs that are not of a feed, wherever people see them and decide about them."""

import re

import pytest
from django.core.cache import cache
from django.db import transaction
from tests.support.api import Application, refused
from tests.support.commands_inside import harvester
from tests.support.feed_rows import make_feed, make_source
from tests.support.made_up_kinds import HELD, PLAIN, REASON, held, made_up_kinds, scraped, without
from tests.support.portal import person
from tests.support.portal_feeds import run as feed_run
from tests.support.workers import run_until_idle

from harvester.catalog.models import Retailer
from harvester.feeds import attention
from harvester.kernel.errors import InvalidInput
from harvester.ops.models import Role
from harvester.runs import queries
from harvester.runs.alerts import run_is_held
from harvester.runs.gates import Verdict
from harvester.runs.models import Run

pytestmark = pytest.mark.usefixtures("database")


@pytest.fixture(autouse=True)
def kinds():
    with made_up_kinds():
        yield


@pytest.fixture
def three():
    """A run of each kind, oldest first: of a feed, scraped, held."""
    feed = make_feed(make_source("Shop by Impact"))
    figures = {"rows_read": 42, "products_upserted": 41}
    of_feed = feed_run(feed, figures=figures)
    return [of_feed, scraped(feed.source), held(Retailer.objects.create(name="Kestrel"))]


@pytest.fixture
def api():
    return Application()


def test_queries_narrow_runs_by_kind_subject_and_source(three):
    of_feed, scrape, actor = three
    asked = {
        queries.RunQuery(): [actor, scrape, of_feed],
        queries.RunQuery(kind="SCRAPE"): [scrape],
        queries.RunQuery(subject_id=of_feed.subject_id): [of_feed],
        queries.RunQuery(source_id=of_feed.source_id): [scrape, of_feed],
        queries.RunQuery(before=actor.no, most=1): [scrape],
        queries.RunQuery(kind="ACTOR", status="FAILED"): [],
    }
    assert {query: queries.runs(query) for query in asked} == asked
    assert queries.run(scrape.no) == queries.run(scrape.pk) == scrape


@pytest.mark.parametrize(("wrong", "said"), [({"kind": "FEED"}, "there are AFFILIATE_FEED, "), ({"most": 0}, "most")])
def test_a_query_for_what_cannot_be_is_refused(wrong, said):
    with pytest.raises(InvalidInput, match=said):
        queries.RunQuery(**wrong)


def test_runs_are_described_in_two_statements_for_each_kind(three, django_assert_num_queries):
    with django_assert_num_queries(3):  # the plain kind knows everything without asking, the held one its figures
        of_feed, scrape, actor = queries.described(three)
    assert (of_feed.subject_name, of_feed.column("rows"), of_feed.column("remark")) == ("Shop by Impact", 42, None)
    assert (scrape.kind_label, scrape.subject_name, scrape.column("rows"), scrape.advice) == (
        "Scrape",
        None,
        None,
        None,
    )
    assert (actor.subject_name, actor.labelled_figures) == ("Kestrel", [("candidates found", 12)])


def test_the_api_shows_runs_of_all_kinds(three, api):
    of_feed, scrape, actor = three
    items = api.read("/runs")["items"]
    shown = [(item["no"], item["kind"], item["subject"]["name"], item["feed"], item["products"]) for item in items]
    assert shown == [
        (actor.no, "ACTOR", "Kestrel", None, 12),
        (scrape.no, "SCRAPE", None, None, None),
        (of_feed.no, "AFFILIATE_FEED", "Shop by Impact", "Shop by Impact", 41),
    ]
    assert items[0]["subject"] == {"id": str(actor.subject_id), "name": "Kestrel", "type": "retailer"}
    assert (items[0]["feed_id"], items[2]["feed_id"]) == (None, str(of_feed.subject_id))
    assert [item["no"] for item in api.read("/runs", kind="SCRAPE")["items"]] == [scrape.no]
    assert refused(api.get("/api/v1/runs", {"kind": "feed"})) == (422, "INVALID_INPUT")


def test_the_api_shows_one_run_of_any_kind(three, api):
    of_feed, scrape, actor = (api.read(f"/runs/{run.no}") for run in three)
    assert set(of_feed) == set(scrape) == set(actor)
    assert (scrape["error"], scrape["advice"], scrape["figures"], scrape["rejects"]) == ("It broke.", None, {}, {})
    assert (of_feed["parts"], scrape["parts"]) == ({}, {})
    assert (actor["expected"], actor["figures"], actor["choices"]) == ({"candidates": 12}, {"candidates": 12}, None)
    assert actor["gates"][0]["reason"] == REASON
    assert of_feed["figures"]["rows_read"] == 42


def test_a_run_of_a_kind_that_this_version_does_not_have_is_shown_as_well(three, api):
    with without(PLAIN):
        shown = api.read(f"/runs/{three[1].no}")
        assert (shown["kind"], shown["subject"]["type"], shown["status"]) == ("SCRAPE", None, "FAILED")
        assert refused(api.write(f"/runs/{three[1].no}/approve", {"expected": {}})) == (409, "NOT_BLOCKED")


def test_a_decision_over_the_api_names_the_figures_of_the_kind(three, api):
    _, scrape, actor = three
    assert refused(api.write(f"/runs/{actor.no}/approve", {"expected": {}})) == (422, "INVALID_INPUT")
    assert refused(api.write(f"/runs/{actor.no}/approve", {"expected": {"candidates": 3}})) == (409, "FIGURES_CHANGED")
    assert refused(api.write(f"/runs/{scrape.no}/approve", {"expected": {}})) == (409, "NOT_BLOCKED")
    assert api.write(f"/runs/{actor.no}/approve", {"expected": {"candidates": 12}}).status_code == 202
    run_until_idle(threads=1)
    assert Run.objects.get(pk=actor.pk).outcome == "APPROVED"


def runs(*words, code=0):
    """`harvester runs ...` with these words, which has to end with this code."""
    ran = harvester("runs", *words)
    assert ran.code == code, ran.err or ran.out
    return ran


def test_commands_list_and_narrow_runs_of_all_kinds(three):
    of_feed, scrape, actor = three
    asked = {
        (): [actor.no, scrape.no, of_feed.no],
        ("--kind", "SCRAPE"): [scrape.no],
        ("--feed", "Shop by Impact"): [of_feed.no],
        ("--outcome", "held", "--trigger", "SCHEDULED"): [actor.no],
        ("--status", "FAILED", "--limit", 1): [scrape.no],
    }
    assert {words: [run["no"] for run in runs("list", *words, "--json").json["runs"]] for words in asked} == asked
    shown = runs("list").out
    for words in ("Actor run", "Kestrel", "Scrape", "Feed run", "Shop by Impact"):
        assert words in shown
    assert "there are AFFILIATE_FEED" in runs("list", "--kind", "feed", code=2).err


def test_commands_show_a_run_of_any_kind(three):
    _, scrape, actor = three
    failed, waiting = runs("show", scrape.no).out, " ".join(runs("show", actor.no).out.split())
    assert "It broke." in failed
    for words in (
        f"run {actor.no} of Kestrel HELD",
        "Actor run",
        "candidates found 12",
        REASON,
        "harvester runs approve",
    ):
        assert words in waiting
    shown = runs("show", actor.no, "--json").json
    assert (shown["subject"]["name"], shown["candidates"], shown["feed"]) == ("Kestrel", 12, None)


def test_the_commands_of_feeds_about_runs_say_the_same(three):
    of_feed = three[0]
    assert harvester("feed", "inspect", of_feed.no, "--json").json == runs("show", of_feed.no, "--json").json
    listed = harvester("feed", "runs", "--json").json
    assert listed == runs("list", "--kind", "AFFILIATE_FEED", "--json").json
    assert [run["no"] for run in listed["runs"]] == [of_feed.no]


def test_commands_decide_about_a_run_of_any_kind_that_holds(three):
    of_feed, scrape, actor = three
    assert runs("approve", scrape.no, "--yes", "--json", code=4).error["code"] == "NOT_BLOCKED"
    assert "There is no run 9999" in runs("reject", 9999, "--reason", "x", "--yes", code=3).err
    for command in ("undo-ignore", "file"):
        assert "is not of a feed" in runs(command, actor.no, code=3).err
    assert "was not promoted" in runs("ignore", scrape.no, "--reason", "x", code=4).err
    assert runs("ignore", of_feed.no, "--reason", "no VAT", "--json").json == {"run_no": of_feed.no, "products": 0}
    runs("reject", actor.no, "--reason", "not ours", "--yes")
    run_until_idle(threads=1)
    assert Run.objects.values_list("outcome", "decision_reason").get(pk=actor.pk) == ("REJECTED", "not ours")


@pytest.fixture
def operator(client):
    client.force_login(person("otto", Role.OPERATOR))
    return client


def text(answer) -> str:
    assert answer.status_code == 200
    return " ".join(re.sub(r"<[^>]+>", " ", answer.content.decode()).split())


def test_the_portal_lists_and_narrows_runs_of_all_kinds(three, operator):
    of_feed, scrape, actor = three
    answer = operator.get("/runs/")
    shown = text(answer)
    for words in (
        f"#{actor.no} Actor run Kestrel Held Scheduled", f"#{scrape.no} Scrape Shop by Impact Failed X Scheduled",
        f"#{of_feed.no} Feed run Shop by Impact Promoted Scheduled",
    ):  # fmt: skip
        assert words in shown
    linked = re.findall(r'class="hv-object" href="([^"]+)"', answer.content.decode())
    assert linked == [
        f"/{kind}/{run.subject_id}/" for kind, run in (("retailers", actor), ("sources", scrape), ("feeds", of_feed))
    ]
    for query, runs in {"kind=ACTOR": [actor], "kind=SCRAPE&status=FAILED": [scrape], "kind=none": []}.items():
        page = operator.get(f"/runs/?{query}").content.decode()
        assert re.findall(r'id="run-(\d+)"', page) == [str(run.no) for run in runs]


def test_the_page_of_a_run_of_any_kind_is_complete(three, operator):
    _, scrape, actor = three
    failed, waiting = text(operator.get(f"/runs/{scrape.no}/")), text(operator.get(f"/runs/{actor.no}/"))
    for words in (
        f"Scrape {scrape.no}",
        "Why it failed X It broke.",
        "Failed Shop by Impact",
        "Sort out 600 ms",
        "Timeline",
    ):
        assert words in failed
    for words in (
        f"Actor run {actor.no}", "Held Kestrel", "Held since", f"New candidates. {REASON}", "Holds New candidates",
        "Candidates found 12", "Ask the actor 900 ms", "Timeline", f"Approve run {actor.no}?", "Number",
    ):  # fmt: skip
        assert words in waiting
    for words in ("Download file", "rows rejected", "Ignore run", "half a file"):
        assert words not in failed + waiting


def test_a_failed_run_shows_the_advice_of_its_kind(operator):
    run = held(Retailer.objects.create(name="Kestrel"), status="FAILED", outcome=None, error_code="X", error="No.")
    page = operator.get(f"/runs/{run.no}/").content.decode()
    assert "Ask the actor about X with <code>ask</code>." in page


def test_a_run_at_work_shows_the_stages_of_its_kind(three, operator):
    shop = Retailer.objects.create(name="Heron")
    at_work = {"status": "RUNNING", "outcome": None, "finished_at": None, "duration_ms": None}
    known, other = (
        held(shop, stage="ask", **at_work),
        scraped(three[0].feed_run.feed.source, stage="read_pages", **at_work),
    )
    assert 'aria-current="step">Ask the actor<' in operator.get(f"/runs/{known.no}/").content.decode()
    assert "Read pages" in text(operator.get(f"/runs/{other.no}/"))


@pytest.mark.parametrize(("verb", "outcome"), [("approve", "APPROVED"), ("reject", "REJECTED")])
def test_the_portal_decides_about_a_run_of_any_kind_that_holds(three, operator, verb, outcome):
    _, scrape, actor = three
    refusal = operator.post(f"/runs/{scrape.no}/{verb}/", {"reason": "why"}, follow=True)
    assert "is not held; there is nothing to decide" in text(refusal)
    assert "did not come along" in text(operator.post(f"/runs/{actor.no}/{verb}/", {"reason": "why"}, follow=True))
    page = operator.get(f"/runs/{actor.no}/").content.decode()
    seen = dict(re.findall(r'<input type="hidden" name="(candidates)" value="(\d+)">', page))
    operator.post(f"/runs/{actor.no}/{verb}/", {"reason": "why", **seen})
    run_until_idle(threads=1)
    assert Run.objects.get(pk=actor.pk).outcome == outcome
    assert f"{outcome.capitalize()} by otto" in text(operator.get(f"/runs/{actor.no}/"))


def test_the_list_asks_two_questions_for_each_kind(three, operator, django_assert_max_num_queries):
    with django_assert_max_num_queries(6):
        operator.get("/runs/")


def test_the_dashboard_shows_held_and_running_runs_of_any_kind(three, operator):
    of_feed, _, actor = three
    at_work = {"status": "RUNNING", "outcome": None, "finished_at": None, "duration_ms": None}
    running = held(Retailer.objects.create(name="Heron"), stage="ask", **at_work)
    with transaction.atomic():
        run_is_held(HELD, Retailer.objects.get(pk=actor.subject_id), actor, Verdict(findings=()))
    cache.clear()
    shown = text(operator.get("/"))
    assert f"Heron Run {running.no}, ask started" in shown
    assert f"Kestrel: run {actor.no} is held" in shown
    assert f"Run {of_feed.no}" not in shown


def test_a_failed_run_of_another_kind_is_not_why_a_feed_fails(three):
    feed = three[0].feed_run.feed
    type(feed).objects.filter(pk=feed.pk).update(status="ENABLED", consecutive_failures=1)
    feed_run(feed, "FAILED", hours_ago=0.5, error="No such file.")
    scraped(feed.source)
    assert [need.reason for each in attention.needs() for need in each.named if each.kind == "FAILING"] == [
        "No such file."
    ]


def test_the_page_of_a_source_names_the_kinds_of_its_runs(three, operator):
    shown = text(operator.get(f"/sources/{three[1].source_id}/"))
    assert f"{three[0].no} Feed run" in shown
    assert f"{three[1].no} Scrape" in shown
