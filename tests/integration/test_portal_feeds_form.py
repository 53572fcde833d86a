"""The forms that add and change feeds: they keep what was typed and show errors at their fields."""

import re
from dataclasses import replace

import pytest
from tests.support.portal import person, verbs
from tests.support.portal_feeds import READY, feed

from harvester.catalog.models import Retailer, Source
from harvester.feeds.models import Feed
from harvester.guards import secrets
from harvester.ops.models import Role

pytestmark = pytest.mark.django_db
PASSWORD = "hunter2-and-a-half"
NEW = {
    "source": "",
    "source_name": "Acme by Impact",
    "retailer": "",
    "retailer_name": "Acme",
    "website": "https://acme.example",
    "network": "impact",
    "transport": "SFTP",
    "host": "sftp.example.com",
    "path": "/catalog.csv.gz",
    "username": "acme",
    "password": PASSWORD,
    "schedule_hours": "6",
    "use_manifest": "on",
}


@pytest.fixture
def admin(client):
    client.force_login(person("ada", Role.ADMIN))
    return client


@pytest.fixture
def ftp(settings):
    settings.CONFIG = replace(settings.CONFIG, allow_plain_ftp=True)


def wrong(answer) -> dict[str, str]:
    """Return the errors of the form by field."""
    fields = re.split(r'<div class="hv-field', answer.content.decode())[1:]
    found = {}
    for field in fields:
        error = re.search(r'class="hv-field-error"[^>]*>([^<]*)<', field)
        if error:
            found[re.search(r' name="([^"]+)"', field)[1]] = error[1]
    return found


def sealed(of: Feed) -> dict[str, str]:
    return secrets.open_document("feed", of.pk)


def test_a_retailer_a_source_a_draft_and_its_credentials_are_made_at_once(admin):
    answer = admin.post("/feeds/add/", {**NEW, "max_file_mb": "20", "threshold_expiry_share": "0.4"})
    made = Feed.objects.select_related("source__retailer").get()
    assert answer.headers["Location"] == f"/feeds/{made.pk}/"
    assert (made.status, str(made), made.source.retailer.domain) == ("DRAFT", "Acme by Impact", "acme.example")
    assert (made.source.kind, made.source.affiliate_network) == ("AFFILIATE_FEED", "IMPACT")
    assert (made.schedule_hours, made.max_file_bytes, made.thresholds) == (6, 20 * 1024**2, {"expiry_share": 0.4})
    assert (made.source.expiry_hours, made.use_manifest, made.unchanged_means_seen) == (48, True, False)
    assert sealed(made) == {"password": PASSWORD}
    assert {"RETAILER_CREATED", "SOURCE_CREATED", "FEED_CREATED", "CREDENTIAL_CHANGED"} <= set(verbs())


def test_a_source_that_has_no_feed_can_be_chosen(admin):
    retailer = Retailer.objects.create(name="Acme <b>")
    free = Source.objects.create(retailer=retailer, name="Free", kind="AFFILIATE_FEED")
    Source.objects.create(retailer=retailer, name="Direct", kind="DIRECT")
    feed("Taken")
    page = admin.get("/feeds/add/").content.decode()
    offered = re.search(r'<select[^>]* name="source".*?</select>', page, re.DOTALL)[0]
    assert re.findall(r"<option[^>]*>([^<]+)", offered) == ["New source", "Free (Acme &lt;b&gt;)"]
    again = admin.post("/feeds/add/", {**NEW, "source": str(free.pk), "host": "two words"}).content.decode()
    assert f'<option value="{free.pk}" selected>' in again
    admin.post("/feeds/add/", {**NEW, "source": str(free.pk), "source_name": "ignored"})
    assert Feed.objects.get(source=free).host == "sftp.example.com"
    assert Retailer.objects.count() == 2, "no other was created"


def test_how_stock_and_links_are_read_can_be_set_and_is_shown(admin):
    admin.post("/feeds/add/", {**NEW, "unknown_stock": "REJECT", "kept_parameters": "Source, ref"})
    made = Feed.objects.get()
    assert (made.unknown_stock, made.kept_parameters) == ("REJECT", ["ref", "source"])
    page = admin.get(f"/feeds/{made.pk}/edit/").content.decode()
    assert 'value="ref, source"' in page
    assert re.search(r'<option value="REJECT" selected[^>]*>Row rejected', page)


BAD = {
    "kept_parameters": ({"kept_parameters": "a b"}, "names of parameters"),
    "host": ({"host": "two words"}, "host"),
    "network": ({"network": ""}, "network is missing"),
    "port": ({"port": "99999"}, "whole number"),
    "path": ({"path": "/feeds/"}, "names a directory"),
    "expiry_hours": ({"expiry_hours": "0"}, "from 1 to 168"),
    "default_currency": ({"default_currency": "XXQ"}, "ISO 4217"),
    "max_file_mb": ({"max_file_mb": "big"}, "whole number"),
    "threshold_reject_share": ({"threshold_reject_share": "7"}, "reject_share"),
    "source_name": ({"source_name": ""}, "Must not be empty"),
    "retailer_name": ({"retailer_name": ""}, "Must not be empty"),
    "website": ({"website": "ftp://acme.example"}, "http"),
    "private_key": ({"private_key": "no key", "password": ""}, "cannot be used"),
    "passphrase": ({"passphrase": "open sesame", "password": ""}, "a passphrase is not enough"),
    "retailer": ({"retailer": "01a1e294-522c-7c89-9b8e-132d67d75c14"}, "valid choice"),
}


@pytest.mark.parametrize("field", BAD)
def test_a_refusal_points_at_its_field_keeps_what_was_typed_and_saves_nothing(admin, field):
    change, words = BAD[field]
    answer = admin.post("/feeds/add/", {**NEW, **change})
    assert answer.status_code == 200
    assert list(wrong(answer)) == [field]
    assert words in wrong(answer)[field]
    page = answer.content.decode()
    assert 'value="acme"' in page, "the user name is still there"
    assert not any(secret in page for secret in (PASSWORD, "no key", "open sesame")), "secrets are never sent back"
    assert (Feed.objects.count(), Source.objects.count(), Retailer.objects.count()) == (0, 0, 0)


def test_all_errors_are_shown_together(admin):
    answer = admin.post("/feeds/add/", {**NEW, "retailer_name": "", "host": "two words", "port": "x"})
    assert list(wrong(answer)) == ["retailer_name", "host", "port"]
    assert "Enter the credentials again" in answer.content.decode()


def test_an_empty_form_points_at_everything_that_is_missing(admin):
    answer = admin.post("/feeds/add/", dict.fromkeys(NEW, "") | {"transport": "SFTP"})
    assert list(wrong(answer)) == ["source_name", "retailer_name", "network"]


def test_a_name_that_is_taken_is_refused_at_its_field(admin):
    Source.objects.create(retailer=Retailer.objects.create(name="X"), name="Acme by Impact", kind="DIRECT")
    assert list(wrong(admin.post("/feeds/add/", NEW))) == ["source_name"]
    assert not Retailer.objects.filter(name="Acme").exists(), "all or nothing"


def edited(client, of: Feed, **changes):
    """Send the form as the browser would: as it is shown, with some changes."""
    page = client.get(f"/feeds/{of.pk}/edit/")
    form = page.context["form"]
    shown = {name: form[name].value() for name in form.fields}
    sent = {name: "on" if value is True else value for name, value in shown.items() if value not in (None, False)}
    return client.post(f"/feeds/{of.pk}/edit/", {**sent, **changes})


def test_an_untouched_form_changes_nothing(admin):
    one = feed(thresholds={"expiry_share": 0.4}, max_file_bytes=10_000_000, schedule_hours=4, port=2222, **READY)
    before = Feed.objects.filter(pk=one.pk).values().get()
    assert edited(admin, one).status_code == 302
    assert Feed.objects.filter(pk=one.pk).values().get() == before
    assert verbs(object_id=str(one.pk)) == []


def test_a_blank_password_keeps_the_one_that_is_there(admin):
    one = feed(**READY)
    secrets.put("feed", one.pk, {"password": PASSWORD})
    page = admin.get(f"/feeds/{one.pk}/edit/").content.decode()
    assert "Leave blank to keep existing password" in page
    assert "••••••••" in page
    assert PASSWORD not in page
    edited(admin, one, path="/other.csv")
    assert sealed(one) == {"password": PASSWORD}
    assert verbs(object_id=str(one.pk)) == ["FEED_UPDATED"]
    edited(admin, one, password="another one")
    assert sealed(one) == {"password": "another one"}
    assert verbs(object_id=str(one.pk)) == ["FEED_UPDATED", "CREDENTIAL_CHANGED"]


def test_settings_go_back_to_their_defaults_when_they_are_emptied(admin):
    one = feed(thresholds={"expiry_share": 0.4, "reject_least": 5}, max_file_bytes=1024**2, default_currency="EUR")
    edited(admin, one, threshold_expiry_share="", max_file_mb="", default_currency="", schedule_hours="24")
    changed = Feed.objects.get(pk=one.pk)
    assert changed.thresholds == {"reject_least": 5}
    assert (changed.max_file_bytes, changed.default_currency, changed.schedule_hours) == (None, "", 24)


def test_a_feed_that_runs_refuses_to_lose_what_it_needs(admin):
    one = feed(status="ENABLED", **READY)
    answer = edited(admin, one, host="other.example.com")
    assert "Pause it first" in answer.content.decode()
    assert 'value="other.example.com"' in answer.content.decode()
    assert Feed.objects.get(pk=one.pk).host == READY["host"]


def test_plain_ftp_is_not_offered_where_it_is_off(admin):
    page = admin.get("/feeds/add/").content.decode()
    assert 'value="SFTP"' in page
    assert 'value="FTP"' not in page
    assert list(wrong(admin.post("/feeds/add/", {**NEW, "transport": "FTP", "accept_insecure": "on"}))) == ["transport"]


def test_plain_ftp_needs_its_box_checked(admin, ftp):
    assert "unencrypted" in admin.get("/feeds/add/").content.decode()
    refused = wrong(admin.post("/feeds/add/", {**NEW, "transport": "FTP"}))
    assert refused == {"accept_insecure": "Check this box to use plain FTP, or choose SFTP."}
    admin.post("/feeds/add/", {**NEW, "transport": "FTP", "accept_insecure": "on"})
    assert Feed.objects.get().transport == "FTP"
    assert "INSECURE_TRANSPORT_SELECTED" in verbs()
