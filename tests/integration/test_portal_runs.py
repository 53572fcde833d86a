"""Runs in the portal: the list, the page of one run, and what people decide on it."""

import re
from pathlib import Path

import pytest
from django.contrib.staticfiles import finders
from django.core.cache import cache
from django.db import connection
from django.test.utils import CaptureQueriesContext
from tests.support import page_runs
from tests.support.feed_world import OLGA
from tests.support.feeds import HEADER, row
from tests.support.feeds import feed as written
from tests.support.jobs import change
from tests.support.portal import MOMENTS_AGO, person, verbs
from tests.support.tables import rows
from tests.support.workers import run_until_idle

from harvester.catalog import corrections
from harvester.catalog.exposure import exposure_of
from harvester.catalog.holds import choices
from harvester.feeds import attention, decisions
from harvester.feeds.attention import NeedKind
from harvester.feeds.figures import visible_now
from harvester.feeds.models import FeedRun
from harvester.ops.models import Role
from harvester.runs.models import Run

pytestmark = pytest.mark.usefixtures("database")
SCRIPT = "<script>alert(1)</script>"
EXPECTED = re.compile(r'<input type="hidden" name="((?:products|prices)_\w+)" value="(\d+)">')


@pytest.fixture
def viewer(client):
    client.force_login(person("vera", Role.VIEWER))
    return client


@pytest.fixture
def operator(client):
    client.force_login(person("otto", Role.OPERATOR))
    return client


@pytest.fixture
def admin(client):
    client.force_login(person("ada", Role.ADMIN))
    return client


def text(answer) -> str:
    words = re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", answer.content.decode()))
    return re.sub(r" (?=[,.:;])", "", words)


def page_of(client, run, query="", **more):
    answer = client.get(f"/runs/{run.no}/{query}", **more)
    assert answer.status_code == 200
    return answer


def seen(client, run) -> dict:
    """The figures that the page sends along with a decision."""
    return dict(EXPECTED.findall(page_of(client, run).content.decode()))


def decide(client, run, verb, **form):
    return text(client.post(f"/runs/{run.no}/{verb}/", form, follow=True))


def outcome(run) -> str:
    return Run.objects.values_list("outcome", flat=True).get(pk=run.pk)


def test_numbers_of_a_list_are_aligned_to_the_right(world, viewer):
    world.hold()
    shown = viewer.get("/runs/").content.decode()
    headings = re.findall(r'<th scope="col"( class="hv-right")?>([^<]+)</th>', shown)
    assert [name for style, name in headings if style] == ["Took", "Products", "Prices", "Missing"]
    cells = re.findall(r'<td data-label="([^"]+)"( class="hv-right")?>', shown)
    assert len(cells) == 2 * len(headings)
    assert {(style, name) for name, style in cells} == set(headings)
    assert ".hv-right { text-align: right !important; }" in Path(finders.find("portal/portal.css")).read_text()


def test_the_list_shows_runs_newest_first_with_their_figures(world, viewer):
    held = world.hold()
    shown = text(viewer.get("/runs/"))
    assert f"#{held.no} Feed run Shop by Impact Held Scheduled" in shown
    assert shown.index(f"#{held.no}") < shown.index(f"#{held.no - 1}")


def test_the_list_is_filtered(world, viewer):
    world.hold()
    wanted = {
        "outcome=HELD": 1, "outcome=PROMOTED": 1, "status=RUNNING": 0, "status=SUCCEEDED&trigger=SCHEDULED": 2,
        "trigger=MANUAL": 0, "feed=shop": 2, "feed=other": 0, f"feed={world.feed.pk}": 2, "feed=%00": 2,
    }  # fmt: skip
    pages = {query: viewer.get(f"/runs/?{query}").content.decode() for query in wanted}
    assert {query: len(re.findall(r'id="run-\d+"', page)) for query, page in pages.items()} == wanted


def test_the_list_asks_few_questions(world, viewer):
    world.hold()
    with CaptureQueriesContext(connection) as asked:
        viewer.get("/runs/")
    assert len(asked) <= 5


def test_a_run_shows_its_figures_gates_rows_and_columns(world, viewer):
    world.put(*range(100, 140), row(300, Price="free"), row(301, Availability="perhaps"))
    run = world.run()
    with CaptureQueriesContext(connection) as asked:
        shown = text(page_of(viewer, run))
    assert len(asked) <= 12
    for words in (
        "Rows read 42", "Rows rejected 1", "Prices written 41", "Missing products 0 of 0 active products",
        "Holds when more than 30% of them, and at least 10, are missing, or 500 whatever their share.",
        "Rejected Invalid price 1", "Warning Unknown stock 1", "Columns separated by tabs", "Title Name",
        "Compare and judge", "Job succeeded, attempt 1",
    ):  # fmt: skip
        assert words in shown
    assert "free" in shown
    assert "Changes if approved" not in shown
    assert "hx-trigger" not in page_of(viewer, run).content.decode(), "what has ended is not asked for again"


def test_the_page_of_a_running_run_refreshes_only_its_piece(world, viewer):
    run = world.running()
    Run.objects.filter(pk=run.pk).update(stage="parse", error_code="DISK_FULL", error="There is no room.")
    change(run.job_id, """progress = '{"done": 1, "total": 4, "note": "parsed 7 rows"}'""")
    piece = page_of(viewer, run, headers={"HX-Request": "true"}).content.decode()
    assert piece.lstrip().startswith('<div id="run-body"')
    assert 'hx-trigger="every 2s"' in piece
    assert 'class="hv-step-now" aria-current="step">Read<' in piece
    assert 'value="25"' in piece
    assert "There is no room." in piece
    Run.objects.filter(pk=run.pk).update(status="FAILED", finished_at=run.started_at)


def test_a_run_says_where_it_is_while_it_is_there(world):
    world.put(100)
    world.meanwhile(lambda: Run.objects.values_list("stage", flat=True).get(status="RUNNING"))
    world.run()
    assert world.happened == "download"


def test_a_failed_run_says_why_and_what_consumers_see(world, viewer):
    world.put(*range(100, 140))
    good = world.run()
    world.put_bytes(b"<html>Sorry</html>")
    shown = text(page_of(viewer, world.run()))
    assert "Why it failed HTML_INSTEAD_OF_CSV" in shown
    assert f"They see run {good.no}, promoted" in shown


def test_a_header_that_lacks_a_column_is_shown_as_a_table_once(world, viewer):
    world.put(*range(100, 140))
    world.run()
    world.put_bytes(b"SKU\tName\tUrl\tBetrag\n1\tx\thttps://shop.example/1\t5 USD\n")
    run = world.run()
    assert run.error_code == "HEADER_UNREADABLE"
    page = page_of(viewer, run).content.decode()
    [table] = re.findall(r'<table class="hv-table" id="header">.*?</table>', page, re.DOTALL)
    shown = " ".join(re.sub(r"<[^>]+>", " ", table).split())
    assert "Field Wanted Found In the last good file" in shown
    assert re.search(r"Sale price or list price Missing \S.* \S Price", shown)
    assert re.search(r"SKU \S SKU SKU", shown)
    assert page.count("The first line") == 2, "a sentence, and the whole message behind Details"
    assert "File format" not in page


def test_a_run_that_met_another_host_key_leads_to_where_the_keys_are_compared(world, viewer):
    world.server.restart_with_another_key()
    shown = page_of(viewer, world.run()).content.decode()
    assert "Approve the new one only if the partner confirms it." in shown
    assert ">To the feed</a>" in shown


def test_a_held_run_shows_what_would_change_and_when_time_runs_out(world, viewer):
    run = world.hold()
    shown = text(page_of(viewer, run))
    assert "37 of 40 active products (92.5%) are not in the file." in shown
    assert "Changes if approved 37 products" in shown
    assert "37 Missing 0 Price changes 0 New" in shown
    gone = world.look().last_promoted_at.timestamp() + (48 + 168) * 3600
    assert f"Offers won't expire before {ts(world.look().held_since.timestamp() + 168 * 3600)} UTC." in shown
    assert f"If nobody decides, they disappear in 8 d, on {ts(gone)} UTC." in shown
    assert "Approve" not in shown
    world.pass_time(170)
    assert "If nobody decides, they disappear in" in text(page_of(viewer, run))
    world.pass_time(50)
    shown = text(page_of(viewer, run))
    assert "Not visible because all offers expired on" in shown
    assert "disappear in" not in shown


def test_offers_that_expired_before_the_hold_began_are_gone_on_dashboard_and_run_page_alike(world, viewer):
    """Consumers see nothing, so the run page must not say that they see the last promoted run."""
    world.put(*range(100, 140))
    good = world.run()
    world.pass_time(49)
    world.put(100, 101, 102)
    run = world.run()
    assert outcome(run) == "HELD"
    assert not world.shown()
    gone = ts(world.look().last_promoted_at.timestamp() + 48 * 3600)
    shown = text(page_of(viewer, run))
    assert f"Not visible because all offers expired on {gone} UTC." in shown
    assert f"They see run {good.no}" not in shown
    needs = {each.kind: each.named[0] for each in attention.needs()}
    assert {f"{need.at:%Y-%m-%d %H:%M}" for need in needs.values()} == {gone}
    assert set(needs) == {NeedKind.HELD, NeedKind.OFFERS_EXPIRED}
    cache.clear()
    assert "offers disappeared" in text(viewer.get("/"))
    assert "Not visible because all offers expired" in text(viewer.get("/feeds/"))
    assert "Not visible because all offers expired" in text(viewer.get(f"/feeds/{world.feed.pk}/"))


def ts(seconds) -> str:
    import datetime as dt

    return f"{dt.datetime.fromtimestamp(seconds, dt.UTC):%Y-%m-%d %H:%M}"


def test_each_kind_of_change_has_its_own_view(world, viewer):
    world.put(*range(100, 140))
    world.run()
    world.put(row(100, Price="9.00"), row(101, Name="Renamed"), row(500))
    run = world.run()
    assert "Thing 100 S-100 · line 2 1.00 USD 9.00 USD +800%" in text(page_of(viewer, run, "?show=prices"))
    assert "Title Thing 101 Renamed" in text(page_of(viewer, run, "?show=content"))
    assert "Thing 500 S-500" in text(page_of(viewer, run, "?show=new"))
    assert "None." in text(page_of(viewer, run, "?show=back"))
    few, more = (page_of(viewer, run, query).content.decode() for query in ("?show=missing", "?show=missing&more=1"))
    assert (few.count('data-label="Product"'), more.count('data-label="Product"')) == (8, 20)
    assert "Missing" in text(page_of(viewer, run, f"?show={SCRIPT}"))


def test_an_operator_approves_what_they_saw(world, operator):
    run = world.hold()
    figures = seen(operator, run)
    assert figures == {"products_upserted": "3", "products_new": "0", "products_missing": "37", "prices_due": "0"}
    shown = decide(operator, run, "approve", **figures)
    assert "is being approved" in shown
    assert "Approving Pending job" in shown
    assert "Approve run" not in shown, "nobody decides twice"
    run_until_idle(threads=1)
    shown = text(page_of(operator, run))
    assert "Approved by otto" in shown
    assert "Changes 37 products" in shown
    assert outcome(run) == "APPROVED"


def test_both_dialogs_say_what_happens_now_and_on_which_date(world, operator):
    run = world.hold()
    world.pass_time(10)
    shown, page = text(page_of(operator, run)), page_of(operator, run).content.decode()
    left = world.look().last_promoted_at.timestamp() + (48 + 10) * 3600
    assert near(shown, r"Nothing changes now\. 37 missing products disappear on (.{16}) UTC unless", left)
    assert near(shown, r"Without a new file, all of them disappear on (.{16}) UTC\.", left)
    assert "Nothing changes for consumers now. These changes are discarded: 37 products go missing." in shown
    assert re.search(r'id="approve" class="hv-button hv-danger"[^>]*>Approve: remove 37 products<', page)
    assert 'id="reject" class="hv-button" ' in page, "the dangerous one is the approval"


def near(shown: str, pattern: str, seconds: float) -> bool:
    """A date on the page, to the minute; what is left of an offer is counted from the moment of the look."""
    return re.search(pattern, shown)[1] in {ts(seconds), ts(seconds + 60)}


def test_after_an_approval_run_feed_and_dashboard_show_what_disappears_until_it_has(world, operator):
    run = world.hold()
    decide(operator, run, "approve", **seen(operator, run))
    run_until_idle(threads=1)
    gone = ts(float(rows("SELECT extract(epoch FROM max(seen_until)) FROM offers")[0][0]) + 48 * 3600)
    assert "37 offers that this run does not contain are still visible. They disappear" in text(page_of(operator, run))
    assert f"by {gone} UTC, unless a later file contains them." in text(page_of(operator, run))
    assert f"Disappearing 37 by {gone} UTC" in text(operator.get(f"/feeds/{world.feed.pk}/"))
    cache.clear()
    shown = text(operator.get("/"))
    assert "All clear" not in shown
    assert "The approval removes 37 offers unless a later file contains them. offers disappear in" in shown
    world.put(*range(100, 139))
    world.run()
    assert "1 offer that this run does not contain is still visible." in text(page_of(operator, run))
    assert exposure_of(world.source.pk).disappearing == 1
    world.pass_time(47)
    world.put(*range(100, 139), 500)
    world.run()
    world.pass_time(2)
    assert exposure_of(world.source.pk).disappearing == 0
    assert attention.needs() == []
    assert "still visible" not in text(page_of(operator, run))


def test_what_consumers_do_not_see_is_not_counted_as_removed(world):
    """A correction hides one of the 37, and after a hold that lasted too long all of them have expired."""
    run = world.hold()
    [(product,)] = rows("SELECT id FROM source_products WHERE identity_value = 'S-139'")
    named = {"scope": "PRODUCT", "source_id": world.source.pk, "product_id": product}
    corrections.create(OLGA, action="IGNORE", reason="not its price", **named)
    assert choices(world.source.pk, run.no).removes == 36
    world.pass_time(48 + 168 + 1)
    choice = choices(world.source.pk, run.no)
    assert (choice.removes, choice.is_expired, world.shown()) == (0, True, {})


def test_a_rejection_needs_a_reason(world, operator):
    run = world.hold()
    assert "A reason is needed" in decide(operator, run, "reject", reason="  ", **seen(operator, run))
    assert outcome(run) == "HELD"
    decide(operator, run, "reject", reason="half a file", **seen(operator, run))
    run_until_idle(threads=1)
    assert re.search(rf"Rejected by otto {MOMENTS_AGO}: half a file", text(page_of(operator, run)))
    assert "Discarded changes" in text(page_of(operator, run))


def test_a_decision_about_other_figures_is_refused_with_a_message(world, operator):
    run = world.hold()
    figures = seen(operator, run)
    FeedRun.objects.filter(pk=run.pk).update(products_missing=38)
    no_number = figures | {"products_missing": "³"}
    for verb in ("approve", "reject"):
        assert "was checked again since you looked" in decide(operator, run, verb, reason="because", **figures)
        for sent in (no_number, {}):
            assert "did not come along" in decide(operator, run, verb, reason="because", **sent)
    assert (outcome(run), seen(operator, run)["products_missing"]) == ("HELD", "38")
    assert rows("SELECT count(*) FROM jobs WHERE queue = 'decisions'") == [(0,)]


def test_a_decision_that_a_rule_refused_is_shown_on_the_page(world, operator):
    run = world.hold()
    decide(operator, run, "approve", **seen(operator, run))
    FeedRun.objects.filter(pk=run.pk).update(products_missing=38)
    run_until_idle(threads=1)
    shown = text(page_of(operator, run))
    assert "The last decision failed FIGURES_CHANGED" in shown
    assert "Approve run" in shown


def test_a_viewer_gets_no_button_and_a_forged_decision_changes_nothing(world, viewer):
    run = world.hold()
    page = page_of(viewer, run).content.decode()
    assert "<dialog" not in page
    assert "Download file" not in page
    for verb in ("approve", "reject", "ignore", "undo-ignore"):
        answer = viewer.post(f"/runs/{run.no}/{verb}/", {"reason": "x"})
        assert answer.status_code == 403
    assert viewer.get(f"/runs/{run.no}/file/").status_code == 403
    assert (outcome(run), verbs(actor_name="vera", object_type="run")) == ("HELD", [])


def test_an_admin_ignores_a_promoted_run_and_undoes_it(world, admin):
    world.put(*range(100, 140))
    run = world.run()
    assert "A reason is needed" in decide(admin, run, "ignore", reason="")
    assert "that concerns 40 products" in decide(admin, run, "ignore", reason="prices without VAT")
    assert world.shown() == {}
    shown = text(page_of(admin, run))
    assert "Ignored" in shown
    assert "prices without VAT" in shown
    assert "count again; that concerns 40 products" in decide(admin, run, "undo-ignore")
    assert len(world.shown()) == 40
    assert "is not ignored" in decide(admin, run, "undo-ignore")


def test_the_dialog_promises_the_state_from_before_only_where_it_is_kept(world, admin):
    """Of two runs that are ignored one after the other, titles and presence return for the newer one alone."""
    world.put(*range(100, 140))
    world.run()
    for name in ("Monday", "Tuesday"):
        world.put(row(100, Name=name, Price="77.00"), *range(101, 140))
        run = world.run()
    older = Run.objects.get(no=run.no - 1)
    promise = "titles, links and presence return to their state before this run"
    assert promise in text(page_of(admin, run))
    decisions.ignore(OLGA, run.id, "wrong")
    assert world.look().last_promoted_run_no == older.no
    shown = text(page_of(admin, older))
    assert promise not in shown
    assert "titles, links and presence stay as they are" in shown
    decisions.ignore(OLGA, older.id, "wrong too")
    assert world.shown()["S-100"] == ("Monday", 1.00, True)


def test_the_file_of_a_run_is_handed_out_whole_and_written_down(world, operator):
    world.put(*range(100, 140))
    run = world.run()
    answer = operator.get(f"/runs/{run.no}/file/")
    assert b"".join(answer.streaming_content) == world.file.read_bytes()
    assert answer.headers["Content-Disposition"] == f'attachment; filename="run-{run.no}-catalog.txt"'
    assert answer.headers["Content-Type"] == "application/octet-stream"
    assert answer.headers["X-Content-Type-Options"] == "nosniff"
    assert verbs(object_type="run", actor_name="otto") == ["RUN_FILE_DOWNLOADED"]


def test_a_file_that_is_not_kept_is_a_message(world, operator):
    run = world.run()
    assert run.error_code == "REMOTE_FILE_NOT_FOUND"
    assert "did not download a file" in text(operator.get(f"/runs/{run.no}/file/", follow=True))


@pytest.mark.parametrize(
    ("role", "offered"),
    [
        (Role.VIEWER, []),
        (Role.OPERATOR, ["Run again", "Test", "Download file"]),
        (Role.ADMIN, ["Run again", "Test", "Download file", "Edit feed"]),
    ],
)
def test_the_page_of_a_failed_run_says_what_to_do_and_offers_it(world, client, role, offered):
    client.force_login(person("somebody", role))
    world.put_bytes(b"<html>Sorry</html>")
    run = world.run()
    shown = page_of(client, run).content.decode()
    assert "What to do:" in shown
    assert "<code>harvester runs file RUN</code>" in shown
    assert re.findall(r'class="hv-button(?: [^"]*)?"[^>]*>([^<]+)<', shown) == offered
    if role != Role.VIEWER:
        answer = client.get(f"/runs/{run.no}/file/")
        assert b"".join(answer.streaming_content) == b"<html>Sorry</html>"
    world.change(status="PAUSED")
    assert "Run again" not in page_of(client, run).content.decode(), "a paused feed does not run"


def test_what_partners_write_is_text_and_nothing_else(world, viewer):
    header = [*HEADER, "Manufacturer", "Category", SCRIPT]
    old = [[*row(number), "Acme", "Boots", ""] for number in range(100, 140)]
    world.put_bytes(written(*old, header=header).encode())
    world.run()
    hostile = [*row(101, Name=SCRIPT, Url="https://shop.example/p/101"), SCRIPT, SCRIPT, SCRIPT]
    refused = [*row(102, Name=SCRIPT, Price=SCRIPT), SCRIPT, SCRIPT, SCRIPT]
    world.put_bytes(written(hostile, refused, [*row(500, Name=SCRIPT), "", "", ""], header=header).encode())
    run = world.run()
    assert run.outcome == "HELD"
    for kind in ("missing", "prices", "new", "content", "back"):
        page = page_of(viewer, run, f"?show={kind}&samples=all").content.decode()
        assert SCRIPT not in page
        assert "&lt;script&gt;" in page


def test_runs_that_are_not_there_are_404_and_ids_lead_to_numbers(world, viewer):
    world.put(100)
    run = world.run()
    assert viewer.get("/runs/999999/").status_code == 404
    assert viewer.get("/runs/99999999999999999999/").status_code == 404
    assert viewer.get(f"/runs/{world.feed.pk}/").status_code == 404
    assert viewer.get(f"/runs/{run.pk}/").headers["Location"] == f"/runs/{run.no}/"


def test_an_admin_ignores_a_run_over_pages_on_its_page(database, admin):
    source = page_runs.shop(1)
    run = page_runs.read_all(source, [page_runs.offer("10.00", sku="A")])
    page = admin.get(f"/runs/{run.no}/").content.decode()
    assert 'id="ignore"' in page
    assert 'id="ask-ignore"' in page
    assert "that concerns 1 products" in decide(admin, run, "ignore", reason="prices in cents")
    assert page_runs.shown() == []
    assert 'id="undo-ignore"' in admin.get(f"/runs/{run.no}/").content.decode()
    assert "count again; that concerns 1 products" in decide(admin, run, "undo-ignore")
    assert page_runs.shown() == [10.00]


def test_a_run_that_is_not_of_a_feed_has_a_page_too(world, admin):
    run = Run.objects.create(
        kind="SCRAPE", subject_id=world.source.pk, source_id=world.source.pk, trigger="MANUAL", status="RUNNING"
    )
    number = Run.objects.get(pk=run.pk).no
    assert f"#{number} Page run Shop by Impact Running" in text(admin.get("/runs/"))
    assert "Running Shop by Impact Manual" in text(admin.get(f"/runs/{number}/"))
    assert "was not promoted" in decide(admin, Run.objects.get(pk=run.pk), "ignore", reason="x")
    run.delete()


def test_a_run_that_is_judged_again_waits_for_that(world, operator):
    world.put(200)
    world.run()
    run = world.hold()
    second = Run.objects.get(no=run.no - 1)
    assert f"They see run {second.no}, promoted" in text(page_of(operator, run))
    decisions.ignore(person("ada", Role.ADMIN).actor, second.pk, "wrong prices")
    shown = text(page_of(operator, run))
    assert f"They see run {second.no - 1}, promoted" in shown, "what was shown before the ignored run"
    assert "is being checked again" in shown
    assert "Approve run" not in shown
    run_until_idle(threads=1)
    assert "is being checked again" not in text(page_of(operator, run))


def test_what_is_missing_counts_as_visible_until_it_expires(world):
    """An approval must not look as if it had taken the offers away at once: consumers see them still."""
    world.approve(world.hold())
    seen_by_consumers = len(world.shown())
    assert exposure_of(world.feed.source_id).visible == seen_by_consumers
    assert visible_now() == seen_by_consumers
    world.pass_time(49)
    assert visible_now() == len(world.shown()) == 0


def test_what_is_hidden_does_not_count_as_visible(world):
    world.put(100, 101, 102)
    world.run()
    world.put(*range(100, 105))
    run = world.run()
    [(product,)] = rows("SELECT id FROM source_products WHERE identity_value = 'S-100'")
    named = {"scope": "PRODUCT", "source_id": world.source.pk, "product_id": product}
    made = corrections.create(OLGA, action="IGNORE", reason="not its price", **named)
    decisions.ignore(OLGA, run.pk, "wrong prices")
    assert visible_now() == len(world.shown()) == 2
    world.put(100, 101, 102, row(103, Price="7.00"), row(104, Price="7.00"), 105)
    world.run()
    assert exposure_of(world.source.pk).visible == len(world.shown()) == 5
    corrections.revoke(OLGA, made.pk)
    assert visible_now() == len(world.shown()) == 6
