"""Login in a real browser."""

import pytest
from playwright.sync_api import expect
from tests.support.portal import PASSWORD, person

from harvester.ops.models import Role, User

pytestmark = pytest.mark.browser


def test_a_person_logs_in_and_out(visit):
    person("vera", Role.VIEWER)
    visit.go("/jobs/")
    expect(visit.page.get_by_role("heading", name="Log in")).to_be_visible()
    visit.page.get_by_label("Username").fill("vera")
    visit.page.get_by_label("Password").fill(PASSWORD)
    visit.page.keyboard.press("Enter")
    visit.page.wait_for_url(f"{visit.base}/jobs/")
    visit.page.get_by_text("vera").click()
    visit.page.get_by_role("button", name="Log out").click()
    visit.page.wait_for_url(f"{visit.base}/login/")


def test_a_wrong_password_is_refused_and_five_lock_out(visit):
    visit.expected.append("429")
    person("vera", Role.VIEWER)
    for _ in range(4):
        visit.log_in("vera", "wrong")
        expect(visit.page.get_by_role("alert")).to_contain_text("Wrong username or password.")
    visit.log_in("vera", "wrong")
    expect(visit.page.get_by_role("heading", name="Too many failed logins")).to_be_visible()
    expect(visit.page.get_by_text("Try again in 15 min")).to_be_visible()
    visit.log_in("vera", PASSWORD)
    expect(visit.page.get_by_role("heading", name="Too many failed logins")).to_be_visible()


def test_a_page_that_lives_notices_the_end_of_its_session(viewer):
    viewer.expected.append("401")
    viewer.go("/jobs/")
    User.objects.update(is_active=False)
    viewer.page.wait_for_url("**/login/?next=/jobs/")
