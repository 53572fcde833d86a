"""A feed in a real browser, from its form to its first offers."""

import asyncio
import threading

import pytest
from playwright.sync_api import expect
from tests.support.feed_world import PATH, World, loopback_allowed
from tests.support.feeds import feed as written
from tests.support.feeds import row
from tests.support.sftp_server import HOST, PASSWORD, USERNAME, SftpServer, WellBehaved
from tests.support.workers import worker_thread

from harvester.feeds import verbs
from harvester.feeds.models import Feed
from harvester.kernel.actor import Actor

pytestmark = pytest.mark.browser
SLOW = 30_000
OLGA = Actor(kind="person", id="olga", name="Olga")


class WaitsForTheTest(WellBehaved):
    """Answers no read while the gate is shut."""

    async def read(self, file_obj, offset, size):
        await asyncio.to_thread(self.server.gate.wait, 60)
        return super().read(file_obj, offset, size)


@pytest.fixture
def partner(tmp_path):
    """A partner with a catalog of three products."""
    with loopback_allowed(), SftpServer(tmp_path, behaviour=WaitsForTheTest) as server:
        server.gate = threading.Event()
        server.gate.set()
        file = tmp_path / PATH.lstrip("/")
        file.parent.mkdir()
        file.write_text(written(*(row(number) for number in (100, 101, 102))))
        yield server
        server.gate.set()


def nothing_secret(visit) -> None:
    assert PASSWORD not in visit.page.content()


def press(visit, name) -> None:
    visit.page.get_by_role("button", name=name, exact=True).first.click()


def confirm(visit, name) -> None:
    """Press a button, and then the button of the same name in its dialog."""
    press(visit, name)
    visit.page.get_by_role("dialog").get_by_role("button", name=name, exact=True).click()


def fill_in(visit, server) -> None:
    """First with an invalid host."""

    def field(label):
        return visit.page.get_by_label(label, exact=True)

    field("Source name").fill("Acme by Impact")
    field("Retailer name").fill("Acme")
    field("Network").select_option("impact")
    field("Host").fill("not a host")
    field("Port").fill(str(server.port))
    field("Path").fill(PATH)
    field("Username").fill(USERNAME)
    field("Password").fill(PASSWORD)
    press(visit, "Save draft")
    expect(field("Host")).to_be_focused()
    expect(field("Path")).to_have_value(PATH)
    expect(field("Password")).to_have_value("")
    nothing_secret(visit)
    field("Host").fill(HOST)
    field("Password").fill(PASSWORD)
    press(visit, "Save draft")


def test_a_feed_is_set_up_tested_enabled_and_run(admin, partner):
    page = admin.page
    admin.go("/feeds/")
    page.get_by_role("link", name="Add feed").click()
    fill_in(admin, partner)
    expect(page.get_by_text("Acme by Impact was added as a draft.")).to_be_visible()
    expect(page.locator(".hv-next")).to_contain_text("Host key")
    with worker_thread(threads=1):
        press(admin, "Test connection")
        expect(page.get_by_text(partner.host_key.fingerprint).first).to_be_visible(timeout=SLOW)
        assert not [tried for tried in partner.attempts if tried.secret], "nothing secret went to an unknown server"
        press(admin, "Approve and test again")
        expect(page.get_by_text("The file can be read.")).to_be_visible(timeout=SLOW)
        expect(page.get_by_role("cell", name="Thing 101")).to_be_visible()
        nothing_secret(admin)
        confirm(admin, "Enable")
        expect(page.locator("#headline")).to_contain_text("Enabled")
        partner.gate.clear()
        press(admin, "Run now")
        expect(page.get_by_text("Run queued.")).to_be_visible()
        page.evaluate("() => { window.stayed = true; }")
        expect(page.locator("#headline")).to_contain_text("Running", timeout=SLOW)
        partner.gate.set()
        expect(page.locator("#headline")).to_contain_text("Promoted", timeout=SLOW)
        assert page.evaluate("() => window.stayed"), "without a reload"
    page.locator(".hv-tabs").get_by_role("link", name="Runs").click()
    expect(page.locator("#results tbody tr")).to_have_count(1)
    expect(page.locator("#results tbody tr")).to_contain_text("Promoted")
    page.locator("#results tbody a").first.click()
    expect(page.get_by_text("Promoted").first).to_be_visible()
    page.go_back()
    page.locator(".hv-tabs").get_by_role("link", name="Metrics").click()
    page.wait_for_function(
        "() => window.Chart?.getChart(document.querySelector('[data-chart=rows]'))?.data.datasets[0].data[0] === 3"
    )
    nothing_secret(admin)


def test_a_wrong_password_is_reported_and_corrected(admin, partner):
    page = admin.page
    feed = World(partner).feed
    verbs.change_credentials(OLGA, feed.pk, password="another password")
    admin.go(f"/feeds/{feed.pk}/")
    with worker_thread(threads=1):
        press(admin, "Test connection")
        expect(page.get_by_text("AUTH_FAILED")).to_be_visible(timeout=SLOW)
        expect(page.get_by_text("enter the password or key again")).to_be_visible()
        page.get_by_role("link", name="Back to feed").click()
        page.get_by_role("link", name="Edit", exact=True).click()
        expect(page.get_by_text("Leave blank to keep existing password")).to_be_visible()
        page.get_by_label("Password", exact=True).fill(PASSWORD)
        press(admin, "Save")
        press(admin, "Test connection")
        expect(page.get_by_text("The file can be read.")).to_be_visible(timeout=SLOW)
    nothing_secret(admin)


def test_a_viewer_has_no_button_and_cannot_forge_one(viewer, partner):
    feed = World(partner).feed
    viewer.go(f"/feeds/{feed.pk}/")
    expect(viewer.page.locator("#headline")).to_contain_text("Enabled")
    expect(viewer.page.locator("#content button, #content form, #content dialog")).to_have_count(0)
    viewer.expected.append("403")
    forged = """async (path) => {
        const token = document.querySelector("[name=csrfmiddlewaretoken]").value;
        return (await fetch(path, { method: "POST", headers: { "X-CSRFToken": token } })).status;
    }"""
    for action in ("run", "pause", "test", "enable", "delete", "host-key"):
        assert viewer.page.evaluate(forged, f"/feeds/{feed.pk}/{action}/") == 403, action
    feed.refresh_from_db()
    assert (feed.status, feed.manual_run_requested_at) == ("ENABLED", None)
    assert Feed.objects.count() == 1
