"""API keys in a real browser: created, shown once, revoked after a question."""

import pytest
from playwright.sync_api import expect
from tests.support.api import stored_key

from harvester.ops import api_keys

pytestmark = pytest.mark.browser


def test_an_admin_makes_a_key_and_revokes_it(admin):
    page = admin.page
    admin.go("/api-keys/")
    page.get_by_role("link", name="Create key").click()
    page.get_by_label("Name").fill("price site")
    page.get_by_label("offers:read").check()
    page.get_by_role("button", name="Create key").click()
    expect(page.get_by_role("heading", name="Copy this key now")).to_be_visible()
    token = page.locator("#api-key").inner_text()
    assert api_keys.of_token(token).name == "price site"
    page.get_by_role("link", name="Done").click()
    assert token not in page.content()
    page.get_by_role("button", name="Revoke").click()
    page.get_by_role("dialog").get_by_role("button", name="Revoke").click()
    expect(page.get_by_text("are refused from now on")).to_be_visible()
    assert api_keys.of_token(token).state == "revoked"
    expect(page.get_by_role("button", name="Revoke")).to_have_count(0)


def test_a_form_without_a_scope_keeps_what_was_typed(admin):
    page = admin.page
    admin.go("/api-keys/add/")
    page.get_by_label("Name").fill("price site")
    page.get_by_role("button", name="Create key").click()
    expect(page.get_by_role("alert")).to_have_text("This field is required.")
    expect(page.get_by_label("Name")).to_have_value("price site")


def test_others_look_and_cannot_change(operator):
    key = stored_key(name="price site")
    operator.go(f"/api-keys/{key.pk}/")
    expect(operator.page.get_by_role("heading", level=1)).to_contain_text("price site")
    expect(operator.page.get_by_role("button", name="Revoke")).to_have_count(0)
