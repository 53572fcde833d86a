"""Every address, requested by every role with every method. No address may be missing here."""

from http.cookies import SimpleCookie

import pytest
from django.db import transaction
from django.db.models.functions import Now
from django.test import Client
from django.urls import get_resolver
from tests.support import catalog
from tests.support.api import stored_key
from tests.support.feed_rows import make_feed, make_source
from tests.support.portal import addresses, job, person
from tests.support.portal_feeds import feed
from tests.support.portal_scraping import an_import, entry, override, page, shop, tried

from harvester.catalog.models import PriceCorrection
from harvester.feeds.models import FeedRun
from harvester.kernel.ids import uuid7
from harvester.ops import users
from harvester.ops.alerts import raise_alert
from harvester.ops.models import AuditEvent, Role
from harvester.runs.models import Run

pytestmark = pytest.mark.django_db

LOGIN = 302
#: Address -> method -> answers to nobody, a viewer, an operator, an admin.
SEEN_BY_ALL = {"GET": (LOGIN, 200, 200, 200), "POST": (LOGIN, 405, 405, 405), "DELETE": (LOGIN, 405, 405, 405)}
PROBE = {"GET": (200, 200, 200, 200), "POST": (405, 405, 405, 405), "DELETE": (405, 405, 405, 405)}
OPERATORS_ACT = {"GET": (LOGIN, 405, 405, 405), "POST": (LOGIN, 403, 302, 302), "DELETE": (LOGIN, 405, 405, 405)}
ADMINS_ACT = {"GET": (LOGIN, 405, 405, 405), "POST": (LOGIN, 403, 403, 302), "DELETE": (LOGIN, 405, 405, 405)}
ADMINS_FILL_IN = {"GET": (LOGIN, 403, 403, 200), "POST": (LOGIN, 403, 403, 200), "DELETE": (LOGIN, 405, 405, 405)}
OPERATORS_FILL_IN = {"GET": (LOGIN, 403, 200, 200), "POST": (LOGIN, 403, 200, 200), "DELETE": (LOGIN, 405, 405, 405)}
MATRIX = {
    "/healthz": PROBE,
    "/readyz": PROBE,
    "/metrics": PROBE,
    "/": SEEN_BY_ALL,
    "/login/": {"GET": (200, 302, 302, 302), "POST": (200, 200, 200, 200), "DELETE": (405, 405, 405, 405)},
    "/logout/": {"GET": (302, 405, 405, 405), "POST": (302, 302, 302, 302), "DELETE": (302, 405, 405, 405)},
    "/account/password/": {
        "GET": (LOGIN, 200, 200, 200),
        "POST": (LOGIN, 200, 200, 200),
        "DELETE": (LOGIN, 405, 405, 405),
    },
    "/runs/": SEEN_BY_ALL,
    "/runs/<row:run_no>/": SEEN_BY_ALL,
    "/runs/<uuid:run_id>/": {
        "GET": (302, 302, 302, 302),
        "POST": (LOGIN, 405, 405, 405),
        "DELETE": (LOGIN, 405, 405, 405),
    },
    "/runs/<row:run_no>/file/": {
        "GET": (LOGIN, 403, 302, 302),
        "POST": (LOGIN, 405, 405, 405),
        "DELETE": (LOGIN, 405, 405, 405),
    },
    "/runs/<row:run_no>/approve/": OPERATORS_ACT,
    "/runs/<row:run_no>/reject/": OPERATORS_ACT,
    "/runs/<row:run_no>/ignore/": ADMINS_ACT,
    "/runs/<row:run_no>/undo-ignore/": ADMINS_ACT,
    "/jobs/": SEEN_BY_ALL,
    "/jobs/recent/": SEEN_BY_ALL,
    "/jobs/stuck/": SEEN_BY_ALL,
    "/jobs/<row:job_id>/": SEEN_BY_ALL,
    "/jobs/<row:job_id>/retry/": OPERATORS_ACT,
    "/jobs/<row:job_id>/cancel/": OPERATORS_ACT,
    "/feeds/": SEEN_BY_ALL,
    "/feeds/add/": ADMINS_FILL_IN,
    "/feeds/<uuid:feed_id>/": SEEN_BY_ALL,
    "/feeds/<uuid:feed_id>/runs/": SEEN_BY_ALL,
    "/feeds/<uuid:feed_id>/metrics/": SEEN_BY_ALL,
    "/feeds/<uuid:feed_id>/tests/<row:test_id>/": SEEN_BY_ALL,
    "/feeds/<uuid:feed_id>/edit/": ADMINS_FILL_IN,
    "/feeds/<uuid:feed_id>/run/": OPERATORS_ACT,
    "/feeds/<uuid:feed_id>/test/": OPERATORS_ACT,
    "/feeds/<uuid:feed_id>/pause/": OPERATORS_ACT,
    "/feeds/<uuid:feed_id>/resume/": OPERATORS_ACT,
    "/feeds/<uuid:feed_id>/enable/": ADMINS_ACT,
    "/feeds/<uuid:feed_id>/re-enable/": ADMINS_ACT,
    "/feeds/<uuid:feed_id>/force/": ADMINS_ACT,
    "/feeds/<uuid:feed_id>/delete/": ADMINS_ACT,
    "/feeds/<uuid:feed_id>/retire/": ADMINS_ACT,
    "/feeds/<uuid:feed_id>/host-key/": ADMINS_ACT,
    "/job-events/": SEEN_BY_ALL,
    "/periodic-jobs/": SEEN_BY_ALL,
    "/alerts/": SEEN_BY_ALL,
    "/alerts/<row:alert_id>/": SEEN_BY_ALL,
    "/audit/": SEEN_BY_ALL,
    "/audit/<row:event_id>/": SEEN_BY_ALL,
    "/users/": SEEN_BY_ALL,
    "/users/add/": ADMINS_FILL_IN,
    "/users/<uuid:user_id>/": SEEN_BY_ALL,
    "/users/<uuid:user_id>/role/": ADMINS_ACT,
    "/users/<uuid:user_id>/active/": ADMINS_ACT,
    "/users/<uuid:user_id>/password/": ADMINS_ACT,
    "/api-keys/": SEEN_BY_ALL,
    "/api-keys/add/": {"GET": (LOGIN, 403, 403, 200), "POST": (LOGIN, 403, 403, 200), "DELETE": (LOGIN, 405, 405, 405)},
    "/api-keys/<uuid:key_id>/": SEEN_BY_ALL,
    "/api-keys/<uuid:key_id>/revoke/": ADMINS_ACT,
    "/shops/": SEEN_BY_ALL,
    "/shops/stop-all/": ADMINS_ACT,
    "/shops/<uuid:source_id>/": SEEN_BY_ALL,
    "/shops/<uuid:source_id>/coverage/": SEEN_BY_ALL,
    "/shops/<uuid:source_id>/settings/": {**SEEN_BY_ALL, "POST": (LOGIN, 403, 403, 200)},
    "/shops/<uuid:source_id>/overrides/": {**SEEN_BY_ALL, "POST": (LOGIN, 403, 403, 200)},
    "/shops/<uuid:source_id>/overrides/<row:version>/": SEEN_BY_ALL,
    "/shops/<uuid:source_id>/overrides/<row:version>/test/": ADMINS_ACT,
    "/shops/<uuid:source_id>/overrides/<row:version>/use/": ADMINS_ACT,
    "/shops/<uuid:source_id>/overrides/<row:version>/retire/": ADMINS_ACT,
    "/shops/<uuid:source_id>/hints/": OPERATORS_ACT,
    "/shops/<uuid:source_id>/terms/": ADMINS_ACT,
    "/shops/<uuid:source_id>/adapter/": ADMINS_ACT,
    "/shops/<uuid:source_id>/check_robots/": OPERATORS_ACT,
    "/shops/<uuid:source_id>/robots/": ADMINS_ACT,
    "/shops/<uuid:source_id>/enable/": ADMINS_ACT,
    "/shops/<uuid:source_id>/stop/": ADMINS_ACT,
    "/shops/<uuid:source_id>/show/": ADMINS_ACT,
    "/shops/<uuid:source_id>/hide/": ADMINS_ACT,
    "/shops/<uuid:source_id>/pause/": ADMINS_ACT,
    "/shops/<uuid:source_id>/resume/": ADMINS_ACT,
    "/shops/<uuid:source_id>/read/": OPERATORS_ACT,
    "/shops/<uuid:source_id>/requeue/": OPERATORS_ACT,
    "/pages/": SEEN_BY_ALL,
    "/pages/add/": OPERATORS_FILL_IN,
    "/pages/bulk/": OPERATORS_ACT,
    "/pages/<uuid:target_id>/": SEEN_BY_ALL,
    "/pages/<uuid:target_id>/edit/": OPERATORS_FILL_IN,
    "/pages/<uuid:target_id>/read/": OPERATORS_ACT,
    "/pages/<uuid:target_id>/pause/": OPERATORS_ACT,
    "/pages/<uuid:target_id>/resume/": OPERATORS_ACT,
    "/pages/<uuid:target_id>/enable/": OPERATORS_ACT,
    "/pages/<uuid:target_id>/disable/": OPERATORS_ACT,
    "/pages/<uuid:target_id>/move/": OPERATORS_ACT,
    "/pages/<uuid:target_id>/unpin/": OPERATORS_ACT,
    "/pages/<uuid:target_id>/forget/": OPERATORS_ACT,
    "/pages/<uuid:target_id>/reprocess/": OPERATORS_ACT,
    "/pages/<uuid:target_id>/delete/": ADMINS_ACT,
    "/quarantine/": SEEN_BY_ALL,
    "/quarantine/<uuid:entry_id>/": SEEN_BY_ALL,
    "/quarantine/<uuid:entry_id>/choose/": OPERATORS_ACT,
    "/quarantine/<uuid:entry_id>/propose/": ADMINS_ACT,
    "/quarantine/<uuid:entry_id>/write/": OPERATORS_ACT,
    "/quarantine/<uuid:entry_id>/reprocess/": OPERATORS_ACT,
    "/quarantine/<uuid:entry_id>/dismiss/": OPERATORS_ACT,
    "/url-health/": SEEN_BY_ALL,
    "/url-health/move/": OPERATORS_ACT,
    "/imports/": {**SEEN_BY_ALL, "POST": (LOGIN, 403, 200, 200)},
    "/imports/feed/": {**OPERATORS_ACT, "POST": (LOGIN, 403, 200, 200)},
    "/imports/<uuid:import_id>/": SEEN_BY_ALL,
    "/imports/<uuid:import_id>/choose/": OPERATORS_ACT,
    "/imports/<uuid:import_id>/links/": {
        "GET": (LOGIN, 200, 200, 200),
        "POST": (LOGIN, 403, 200, 200),
        "DELETE": (LOGIN, 405, 405, 405),
    },
    "/imports/<uuid:import_id>/start/": OPERATORS_ACT,
    "/imports/<uuid:import_id>/cancel/": OPERATORS_ACT,
    "/adapters/": SEEN_BY_ALL,
    "/adapters/<uuid:source_id>/<slug:adapter_id>/": SEEN_BY_ALL,
    "/adapters/<uuid:source_id>/<slug:adapter_id>/enable/": ADMINS_ACT,
    "/adapters/<uuid:source_id>/<slug:adapter_id>/disable/": ADMINS_ACT,
    "/adapters/<uuid:source_id>/<slug:adapter_id>/confirm/": ADMINS_ACT,
    "/try-url/": {**SEEN_BY_ALL, "POST": (LOGIN, 403, 200, 200)},
    "/try-url/<uuid:request_id>/": SEEN_BY_ALL,
    "/offers/": SEEN_BY_ALL,
    "/offers/<uuid:source_id>/<row:product_id>/": SEEN_BY_ALL,
    "/retailers/": SEEN_BY_ALL,
    "/retailers/add/": ADMINS_FILL_IN,
    "/retailers/<uuid:retailer_id>/": SEEN_BY_ALL,
    "/retailers/<uuid:retailer_id>/edit/": ADMINS_FILL_IN,
    "/sources/": SEEN_BY_ALL,
    "/sources/add/<uuid:retailer_id>/": ADMINS_FILL_IN,
    "/sources/<uuid:source_id>/": SEEN_BY_ALL,
    "/sources/<uuid:source_id>/edit/": ADMINS_FILL_IN,
    "/sources/<uuid:source_id>/primary/": {**ADMINS_FILL_IN, "POST": (LOGIN, 403, 403, 302)},
    "/corrections/": SEEN_BY_ALL,
    "/corrections/add/": OPERATORS_FILL_IN,
    "/corrections/<uuid:correction_id>/": SEEN_BY_ALL,
    "/corrections/<uuid:correction_id>/revoke/": OPERATORS_ACT,
    "/review/": SEEN_BY_ALL,
    "/review/<uuid:source_id>/<row:product_id>/": SEEN_BY_ALL,
    "/review/<uuid:source_id>/<row:product_id>/link/": OPERATORS_ACT,
    "/review/<uuid:source_id>/<row:product_id>/create/": OPERATORS_ACT,
    "/review/<uuid:source_id>/<row:product_id>/skip/": OPERATORS_ACT,
    "/review/<uuid:source_id>/<row:product_id>/reopen/": OPERATORS_ACT,
}
#: Where the pages about scraping are.
SCRAPING = ("shops", "pages", "quarantine", "imports", "adapters", "try-url")
ROLES = (None, Role.VIEWER, Role.OPERATOR, Role.ADMIN)


def test_the_matrix_names_every_address_and_no_other():
    """The API has a matrix of its own, by keys instead of roles: test_api_access.py."""
    found = [address for address in addresses(get_resolver().url_patterns) if not address.startswith("/api/")]
    assert sorted(found) == sorted(MATRIX)


@pytest.fixture
def people():
    known = {role: person(f"the-{role}", role) for role in Role}
    known["other"] = person("other", Role.VIEWER)
    return known


def held_run() -> Run:
    """A run of a feed, with nothing in progress; which of its rules refuse a decision does not matter here."""
    found = Run.objects.first()
    if found is None:
        made = make_feed(make_source())
        found = Run.objects.create(
            kind="AFFILIATE_FEED", subject_id=made.pk, source_id=made.source_id, trigger="MANUAL", status="SUCCEEDED",
            outcome="HELD", finished_at=Now(),
        )  # fmt: skip
        FeedRun.objects.create(run=found, feed=made)
    return Run.objects.get(pk=found.pk)


def concrete(address, people):
    users.set_role(people[Role.ADMIN].actor, "other", Role.VIEWER)
    event = AuditEvent.objects.order_by("-id").first()
    known = {
        "<row:job_id>": job("failed"),
        "<row:alert_id>": raise_alert("RUN_FAILED", "RUN_FAILED:feed:1", "Shop: run 1 failed", "It did."),
        "<row:event_id>": event.pk,
        "<uuid:user_id>": people["other"].pk,
    }
    known["<uuid:key_id>"] = stored_key().pk
    if address.startswith("/runs/"):
        made = held_run()
        known |= {"<row:run_no>": made.no, "<uuid:run_id>": made.pk}
    if "source_id" in address or "retailer_id" in address or "correction_id" in address:
        known |= of_the_catalog()
    if any(address.startswith(f"/{mount}/") for mount in SCRAPING):
        known |= of_a_shop()
    if "<uuid:feed_id>" in address:
        one = feed(str(uuid7()))
        known["<uuid:feed_id>"] = one.pk
        known["<row:test_id>"] = job("failed", "feeds.test", args={"feed_id": str(one.pk)})
    for part, value in known.items():
        address = address.replace(part, str(value))
    return address


def of_a_shop():
    """A shop with a page in quarantine, an override, an import and an address that was tried."""
    target = page(shop())
    return {
        "<uuid:source_id>": target.source_id,
        "<uuid:target_id>": target.pk,
        "<slug:adapter_id>": target.adapter_id,
        "<row:version>": override(target.source).version,
        "<uuid:entry_id>": entry(target).pk,
        "<uuid:import_id>": an_import().pk,
        "<uuid:request_id>": tried(target.source).pk,
    }


def of_the_catalog():
    """A product in the review queue, and a correction; neither is in the audit log."""
    source = catalog.source()
    product = catalog.product(source)
    catalog.insert("product_links", source_id=source.pk, source_product_id=product, status="NEEDS_REVIEW")
    correction = PriceCorrection.objects.create(
        scope="SOURCE", source=source, action="IGNORE", reason="wrong", created_by="somebody"
    )
    return {
        "<uuid:source_id>": source.pk,
        "<row:product_id>": product,
        "<uuid:retailer_id>": source.retailer_id,
        "<uuid:correction_id>": correction.pk,
    }


def answer(client, method, path) -> int:
    cookies = SimpleCookie(client.cookies)
    with transaction.atomic():
        status = client.generic(method, path).status_code
        transaction.set_rollback(True)
    client.cookies = cookies
    return status


@pytest.mark.parametrize("address", MATRIX)
def test_each_role_gets_the_answer_that_the_matrix_says(address, people):
    """Each request meets the same rows: what the one before it changed is rolled back."""
    path, clients = concrete(address, people), [Client() for _ in ROLES]
    for role, client in zip(ROLES, clients, strict=True):
        if role:
            client.force_login(people[role])
    found = {method: tuple(answer(client, method, path) for client in clients) for method in MATRIX[address]}
    assert found == MATRIX[address]


@pytest.mark.parametrize("address", [a for a in MATRIX if "POST" in MATRIX[a] and MATRIX[a]["POST"][3] in (200, 302)])
def test_a_write_without_its_token_is_refused(address, people):
    before = AuditEvent.objects.count()
    client = Client(enforce_csrf_checks=True)
    client.force_login(people[Role.ADMIN])
    answer = client.post(concrete(address, people))
    assert answer.status_code == 403
    assert "This page has expired" in answer.content.decode()
    assert not AuditEvent.objects.filter(verb__in=["JOB_RETRIED", "JOB_CANCELLED", "USER_CREATED"]).exists()
    assert AuditEvent.objects.count() - before == 2
