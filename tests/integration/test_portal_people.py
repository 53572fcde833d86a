"""Users and the audit log in the portal."""

import re
from uuid import uuid4

import pytest
from django.contrib.admin.models import LogEntry
from django.db import transaction
from django.test import Client
from tests.support.catalog_rows import make_feed, make_run
from tests.support.portal import PASSWORD, job, person, verbs

from harvester.ops import audit
from harvester.ops.models import AuditEvent, Role, User

pytestmark = pytest.mark.django_db
NEW = {"username": "nina", "email": "nina@example.org", "role": "operator", "password": "a quiet evening at home"}


@pytest.fixture(autouse=True)
def quick_passwords(settings):
    settings.PASSWORD_HASHERS = ["tests.support.portal.QuickHasher"]


@pytest.fixture
def ada():
    return person("ada", Role.ADMIN)


@pytest.fixture
def admin(client, ada):
    client.force_login(ada)
    return client


def words(answer) -> str:
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", answer.content.decode()))


def done() -> list[str]:
    """What was audited besides logging in."""
    return [verb for verb in verbs() if verb != "USER_LOGGED_IN"]


def test_an_admin_adds_a_user_who_may_then_log_in(admin):
    answer = admin.post("/users/add/", NEW, follow=True)
    assert "nina was added and can log in now." in words(answer)
    assert done() == ["USER_CREATED"]
    assert "user nina role: operator" in words(admin.get("/audit/?verb=USER_CREATED"))
    assert LogEntry.objects.count() == 0
    nina = User.objects.get(username="nina")
    assert (nina.role, nina.email) == ("operator", "nina@example.org")
    login = Client().post("/login/", {"username": "nina", "password": NEW["password"]})
    assert login.headers["Location"] == "/"


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"username": "ada"}, "already"),
        ({"username": "ADA"}, "A user named ada exists already."),
        ({"username": "two words"}, "valid username"),
        ({"password": "short"}, "too short"),
        ({"password": "password123"}, "too common"),
        ({"role": "emperor"}, "not one of the available choices"),
        ({"email": "nowhere"}, "valid email"),
    ],
)
def test_an_invalid_user_is_not_added(admin, change, said):
    answer = admin.post("/users/add/", {**NEW, **change})
    assert said in words(answer)
    assert NEW["password"] not in answer.content.decode()
    assert done() == []
    assert User.objects.count() == 1


@pytest.mark.parametrize(
    ("change", "field"),
    [({"username": "Ada"}, "username"), ({"username": "two words"}, "username"), ({"password": "short"}, "password")],
)
def test_an_invalid_value_is_reported_at_its_field(admin, change, field):
    form = admin.post("/users/add/", NEW | change).context["form"]
    assert list(form.errors) == [field]


def test_a_role_is_changed_by_one_verb(admin):
    vera = person("vera", Role.VIEWER)
    answer = admin.post(f"/users/{vera.pk}/role/", {"role": "operator"}, follow=True)
    assert "vera is an operator from the next request on." in words(answer)
    assert done() == ["USER_ROLE_CHANGED"]
    assert AuditEvent.objects.get(verb="USER_ROLE_CHANGED").detail == {"from": "viewer", "to": "operator"}


def test_the_same_role_again_writes_nothing(admin):
    vera = person("vera", Role.VIEWER)
    assert "vera is a viewer already." in words(admin.post(f"/users/{vera.pk}/role/", {"role": "viewer"}, follow=True))
    assert done() == []


def test_a_role_that_does_not_exist_is_refused(admin):
    vera = person("vera", Role.VIEWER)
    assert "no such role" in words(admin.post(f"/users/{vera.pk}/role/", {"role": "emperor"}, follow=True))
    assert done() == []


def test_a_user_is_deactivated_and_activated_again(admin):
    vera = person("vera", Role.VIEWER)
    assert "can no longer log in" in words(admin.post(f"/users/{vera.pk}/active/", {"active": "false"}, follow=True))
    assert not User.objects.get(pk=vera.pk).is_active
    assert "can log in again" in words(admin.post(f"/users/{vera.pk}/active/", {"active": "true"}, follow=True))
    assert done() == ["USER_DEACTIVATED", "USER_ACTIVATED"]


def test_a_new_password_by_an_admin_ends_all_sessions_of_that_user(admin):
    vera = person("vera", Role.VIEWER)
    elsewhere = Client()
    elsewhere.force_login(vera)
    answer = admin.post(f"/users/{vera.pk}/password/", {"password": NEW["password"]}, follow=True)
    assert "all their sessions were ended" in words(answer)
    assert elsewhere.get("/jobs/").status_code == 302
    assert done() == ["USER_PASSWORD_CHANGED"]


def test_a_bad_password_by_an_admin_is_refused_and_changes_nothing(admin):
    vera = person("vera", Role.VIEWER)
    assert "too short" in words(admin.post(f"/users/{vera.pk}/password/", {"password": "x"}, follow=True))
    assert User.objects.get(pk=vera.pk).check_password(PASSWORD)
    assert done() == []


@pytest.mark.parametrize(("act", "form"), [("role", {"role": "viewer"}), ("active", {"active": "false"})])
def test_the_last_admin_stays_one(admin, ada, act, form):
    assert "last active admin" in words(admin.post(f"/users/{ada.pk}/{act}/", form, follow=True))
    assert done() == []


def test_an_unknown_user_is_not_found(admin):
    assert admin.get(f"/users/{uuid4()}/").status_code == 404
    assert admin.post(f"/users/{uuid4()}/role/", {"role": "viewer"}).status_code == 404


def test_everybody_sees_users_but_only_admins_see_how_to_change_them(ada):
    for role in (Role.VIEWER, Role.OPERATOR):
        client = Client()
        client.force_login(person(f"the-{role}", role))
        assert "Add user" not in words(client.get("/users/"))
        page = client.get(f"/users/{ada.pk}/").content.decode()
        assert "Change role" not in page
        assert "pbkdf2" not in page
        assert page.count("<form") == 1


def test_users_are_found_by_name(admin):
    person("vera", Role.VIEWER)
    found = words(admin.get("/users/?q=ver"))
    assert "vera" in found
    assert "No matches." in words(admin.get("/users/?q=nobody"))


def test_the_audit_log_shows_who_did_what_to_which(admin):
    vera = person("vera", Role.VIEWER)
    admin.post(f"/users/{vera.pk}/role/", {"role": "operator"})
    page = admin.get("/audit/").content.decode()
    assert "User role changed" in page
    assert f'href="/users/{vera.pk}/"' in page
    event = AuditEvent.objects.get(verb="USER_ROLE_CHANGED")
    assert "from" in words(admin.get(f"/audit/{event.pk}/"))
    assert admin.get("/audit/4242/").status_code == 404


@pytest.mark.parametrize(
    ("query", "count"),
    [
        ("", 3),
        ("actor=ada", 3),
        ("actor=nobody", 0),
        ("verb=JOB_CANCELLED", 1),
        ("object_type=job", 2),
        ("object_type=job&object_id={job}", 2),
        ("object_id=4242", 0),
        ("from=2020-01-01", 3),
        ("to=2020-01-01", 0),
        ("from=2020-01-01&to=9999-12-31", 3),
        ("from=nonsense&to=", 3),
        ("verb=JOB_CANCELLED&actor=ada&object_type=job&from=2020-01-01", 1),
    ],
)
def test_the_audit_log_is_filtered(admin, query, count):
    job_id = job("failed")
    admin.post(f"/jobs/{job_id}/retry/")
    admin.post(f"/jobs/{job_id}/cancel/")
    page = admin.get(f"/audit/?{query.format(job=job_id)}").content.decode()
    assert len(re.findall(r'href="/audit/\d+/"', page)) == count


def test_the_audit_log_is_paged(admin, ada):
    from django.db import transaction

    from harvester.ops import audit

    with transaction.atomic():
        for number in range(30):
            audit.record(ada.actor, "TEST_DONE", "thing", number)
    first = admin.get("/audit/").content.decode()
    link = re.search(r'rel="next" href="([^"]+)"', first)[1].replace("&amp;", "&")
    second = admin.get(f"/audit/{link}").content.decode()
    events = re.findall(r'href="(/audit/\d+/)"', first + second)
    assert len(events) == len(set(events)) == 31


def test_what_was_audited_is_inert(admin, ada):
    from django.db import transaction

    from harvester.ops import audit

    with transaction.atomic():
        audit.record(ada.actor, "TEST_DONE", "<b>thing</b>", "<i>7</i>", detail={"<u>x</u>": "<script>1</script>"})
    pages = [admin.get("/audit/"), admin.get(f"/audit/{AuditEvent.objects.latest('id').pk}/")]
    for page in pages:
        for markup in ("<b>thing", "<i>7", "<u>x", "<script>1"):
            assert markup not in page.content.decode()


def test_periodic_jobs_are_listed(admin):
    from django.utils import timezone

    from harvester.engine.models import PeriodicJob

    assert "No periodic jobs yet" in words(admin.get("/periodic-jobs/"))
    PeriodicJob.objects.create(name="daily clean-up", kind="ops.clean_up", cron="17 3 * * *", next_at=timezone.now())
    assert "17 3 * * *" in words(admin.get("/periodic-jobs/"))


def test_the_audit_log_shows_names_instead_of_ids(admin):
    feed = make_feed("Acme by Impact")
    run = make_run(feed)
    otto = person("otto", Role.OPERATOR)
    with transaction.atomic():
        audit.record(otto.actor, "RUN_HELD", "run", run.pk, detail={"feed": str(feed.pk)})
        audit.record(otto.actor, "FEED_STATUS_CHANGED", "feed", feed.pk, detail={"former": [str(feed.source_id)]})
        audit.record(otto.actor, "USER_CHANGED", "user", otto.pk)
        audit.record(otto.actor, "FEED_DELETED", "feed", "01980000-0000-7000-8000-000000000000")
    shown = words(admin.get("/audit/"))
    for said in (f"run {run.no} of Acme by Impact", "feed: Acme by Impact", "former: Acme by Impact", "user otto"):
        assert said in shown, said
    assert "feed 01980000…" in shown, "what is gone has no name"
    assert f"run {run.no} of Acme" in words(admin.get(f"/audit/{AuditEvent.objects.get(verb='RUN_HELD').pk}/"))
