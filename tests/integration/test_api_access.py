"""Every address of the API with every scope. The expected responses are listed here, and the list is complete."""

import re

import pytest
from django.test import Client
from django.urls import get_resolver
from tests.support.api import Application, refused
from tests.support.portal import addresses

from harvester.api.app import api
from harvester.kernel.ids import uuid7
from harvester.ops.scopes import MEANINGS, Scope

pytestmark = pytest.mark.django_db

SOURCE, TARGET = "/api/v1/scrape/sources/<source_id>", "/api/v1/scrape/targets/<target_id>"
IMPORT, ENTRY = "/api/v1/scrape/imports/<import_id>", "/api/v1/scrape/quarantine/<entry_id>"
#: Address, method and required scope.
MATRIX = [
    ("/api/v1/offers", "GET", Scope.OFFERS_READ),
    ("/api/v1/offers/lookup", "GET", Scope.OFFERS_READ),
    ("/api/v1/offers/<offer_id>", "GET", Scope.OFFERS_READ),
    ("/api/v1/offers/<offer_id>/history", "GET", Scope.OFFERS_READ),
    ("/api/v1/products/<product_id>/offers", "GET", Scope.OFFERS_READ),
    ("/api/v1/retailers", "GET", Scope.OFFERS_READ),
    ("/api/v1/sources", "GET", Scope.OFFERS_READ),
    ("/api/v1/brands", "GET", Scope.OFFERS_READ),
    ("/api/v1/categories", "GET", Scope.OFFERS_READ),
    ("/api/v1/feeds", "GET", Scope.FEEDS_READ),
    ("/api/v1/feeds/<feed_id>", "GET", Scope.FEEDS_READ),
    ("/api/v1/feeds/<feed_id>/run", "POST", Scope.FEEDS_OPERATE),
    ("/api/v1/feeds/<feed_id>/test", "POST", Scope.FEEDS_OPERATE),
    ("/api/v1/feeds/<feed_id>/pause", "POST", Scope.FEEDS_OPERATE),
    ("/api/v1/feeds/<feed_id>/retire", "POST", Scope.FEEDS_ADMIN),
    ("/api/v1/feeds/<feed_id>/resume", "POST", Scope.FEEDS_OPERATE),
    ("/api/v1/runs", "GET", Scope.FEEDS_READ),
    ("/api/v1/runs/<run_id>", "GET", Scope.FEEDS_READ),
    ("/api/v1/runs/<run_id>/file", "GET", Scope.FEEDS_OPERATE),
    ("/api/v1/runs/<run_id>/approve", "POST", Scope.FEEDS_OPERATE),
    ("/api/v1/runs/<run_id>/reject", "POST", Scope.FEEDS_OPERATE),
    ("/api/v1/runs/<run_id>/ignore", "POST", Scope.FEEDS_ADMIN),
    ("/api/v1/runs/<run_id>/undo-ignore", "POST", Scope.FEEDS_ADMIN),
    ("/api/v1/jobs/<job_id>", "GET", Scope.JOBS_READ),
    ("/api/v1/jobs/<job_id>/retry", "POST", Scope.JOBS_OPERATE),
    ("/api/v1/jobs/<job_id>/cancel", "POST", Scope.JOBS_OPERATE),
    ("/api/v1/scrape/sources", "GET", Scope.SCRAPE_READ),
    (SOURCE, "GET", Scope.SCRAPE_READ),
    (SOURCE, "PATCH", Scope.SCRAPE_ADMIN),
    (f"{SOURCE}/review", "POST", Scope.SCRAPE_ADMIN),
    (f"{SOURCE}/enable", "POST", Scope.SCRAPE_ADMIN),
    (f"{SOURCE}/stop", "POST", Scope.SCRAPE_ADMIN),
    (f"{SOURCE}/pause", "POST", Scope.SCRAPE_ADMIN),
    (f"{SOURCE}/resume", "POST", Scope.SCRAPE_ADMIN),
    (f"{SOURCE}/robots", "POST", Scope.SCRAPE_ADMIN),
    (f"{SOURCE}/check-robots", "POST", Scope.SCRAPE_OPERATE),
    (f"{SOURCE}/show", "POST", Scope.SCRAPE_ADMIN),
    (f"{SOURCE}/hide", "POST", Scope.SCRAPE_ADMIN),
    (f"{SOURCE}/enqueue", "POST", Scope.SCRAPE_OPERATE),
    (f"{SOURCE}/requeue", "POST", Scope.SCRAPE_OPERATE),
    (f"{SOURCE}/import-from-feed", "POST", Scope.SCRAPE_OPERATE),
    (f"{SOURCE}/urls", "GET", Scope.SCRAPE_READ),
    (f"{SOURCE}/adapter", "GET", Scope.SCRAPE_READ),
    (f"{SOURCE}/adapter", "POST", Scope.SCRAPE_ADMIN),
    (f"{SOURCE}/adapter/enable", "POST", Scope.SCRAPE_ADMIN),
    (f"{SOURCE}/adapter/disable", "POST", Scope.SCRAPE_ADMIN),
    (f"{SOURCE}/adapter/confirm", "POST", Scope.SCRAPE_ADMIN),
    (f"{SOURCE}/backtest", "POST", Scope.SCRAPE_OPERATE),
    (f"{SOURCE}/overrides", "GET", Scope.SCRAPE_READ),
    (f"{SOURCE}/overrides", "POST", Scope.SCRAPE_ADMIN),
    (f"{SOURCE}/overrides/<version>/test", "POST", Scope.SCRAPE_ADMIN),
    (f"{SOURCE}/overrides/<version>/use", "POST", Scope.SCRAPE_ADMIN),
    (f"{SOURCE}/overrides/<version>/retire", "POST", Scope.SCRAPE_ADMIN),
    (f"{SOURCE}/hints", "GET", Scope.SCRAPE_OPERATE),
    ("/api/v1/scrape/stop-all", "POST", Scope.SCRAPE_ADMIN),
    ("/api/v1/scrape/adapters", "GET", Scope.SCRAPE_READ),
    ("/api/v1/scrape/targets", "GET", Scope.SCRAPE_READ),
    ("/api/v1/scrape/targets", "POST", Scope.SCRAPE_OPERATE),
    ("/api/v1/scrape/targets/bulk", "POST", Scope.SCRAPE_OPERATE),
    (TARGET, "GET", Scope.SCRAPE_READ),
    (f"{TARGET}/readings", "GET", Scope.SCRAPE_READ),
    (TARGET, "PATCH", Scope.SCRAPE_OPERATE),
    (TARGET, "DELETE", Scope.SCRAPE_ADMIN),
    (f"{TARGET}/pause", "POST", Scope.SCRAPE_OPERATE),
    (f"{TARGET}/resume", "POST", Scope.SCRAPE_OPERATE),
    (f"{TARGET}/move", "POST", Scope.SCRAPE_OPERATE),
    (f"{TARGET}/unpin", "POST", Scope.SCRAPE_OPERATE),
    (f"{TARGET}/forget-places", "POST", Scope.SCRAPE_OPERATE),
    (f"{TARGET}/reprocess", "POST", Scope.SCRAPE_OPERATE),
    ("/api/v1/scrape/imports", "GET", Scope.SCRAPE_READ),
    ("/api/v1/scrape/imports", "POST", Scope.SCRAPE_OPERATE),
    (IMPORT, "GET", Scope.SCRAPE_READ),
    (f"{IMPORT}/choices", "POST", Scope.SCRAPE_OPERATE),
    (f"{IMPORT}/lines", "GET", Scope.SCRAPE_READ),
    (f"{IMPORT}/links", "POST", Scope.SCRAPE_OPERATE),
    (f"{IMPORT}/start", "POST", Scope.SCRAPE_OPERATE),
    (f"{IMPORT}/cancel", "POST", Scope.SCRAPE_OPERATE),
    ("/api/v1/scrape/quarantine", "GET", Scope.SCRAPE_READ),
    (ENTRY, "GET", Scope.SCRAPE_READ),
    (f"{ENTRY}/reading", "GET", Scope.SCRAPE_OPERATE),
    (f"{ENTRY}/write", "POST", Scope.SCRAPE_OPERATE),
    (f"{ENTRY}/reprocess", "POST", Scope.SCRAPE_OPERATE),
    (f"{ENTRY}/dismiss", "POST", Scope.SCRAPE_OPERATE),
    (f"{ENTRY}/choose", "POST", Scope.SCRAPE_OPERATE),
    ("/api/v1/scrape/try", "POST", Scope.SCRAPE_OPERATE),
    ("/api/v1/scrape/try/<request_id>", "GET", Scope.SCRAPE_READ),
]
ADDRESSES = sorted({address for address, _, _ in MATRIX})
#: Public: the description, its page, and the addresses that are 404.
OPEN = {"/api/v1/openapi.json": 200, "/api/v1/docs": 200, "/api/v1/docs.css": 200, "/api/v1/": 404, "/api/": 404}
METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")


def test_the_matrix_contains_exactly_all_addresses():
    found = [address for address in addresses(get_resolver().url_patterns) if address.startswith("/api/")]
    assert sorted(set(found)) == sorted([*ADDRESSES, *OPEN])


def test_the_description_has_the_same_addresses_and_methods():
    described = {
        (path.replace("{", "<").replace("}", ">"), method.upper())
        for path, methods in api.get_openapi_schema()["paths"].items()
        for method in methods
    }
    assert described == {(address, method) for address, method, _ in MATRIX}


def concrete(address):
    known = {"<offer_id>": f"{uuid7()}.1", "<job_id>": "1", "<version>": "1"}
    for part, value in known.items():
        address = address.replace(part, value)
    return re.sub(r"<\w+>", str(uuid7()), address)


@pytest.mark.parametrize(("address", "method", "needed"), MATRIX)
def test_an_address_requires_its_scope(address, method, needed):
    path = concrete(address)
    assert refused(Client().generic(method, path)) == (401, "KEY_MISSING")
    for scope in Scope:
        answer = Application(scope).generic(method, path, content_type="application/json")
        if scope == needed:
            assert answer.status_code in (200, 404, 422)
        else:
            assert refused(answer) == (403, "SCOPE_MISSING")


@pytest.mark.parametrize("address", ADDRESSES)
def test_an_address_accepts_only_its_methods(address):
    application, allowed = Application(), {method for other, method, _ in MATRIX if other == address}
    for method in METHODS:
        if method not in allowed:
            answer = application.generic(method, concrete(address), content_type="application/json")
            assert refused(answer) == (405, "METHOD_NOT_ALLOWED")
            more = {"HEAD"} if "GET" in allowed else set()
            assert set(answer.headers["Allow"].split(", ")) == allowed | more


@pytest.mark.parametrize(("address", "status"), OPEN.items())
def test_public_addresses_reveal_no_data(client, address, status):
    assert client.get(address).status_code == status


def test_a_login_is_not_a_key(admin_client):
    assert refused(admin_client.get("/api/v1/offers")) == (401, "KEY_MISSING")


def test_a_write_needs_no_csrf_token():
    application = Application()
    application.handler.enforce_csrf_checks = True
    assert refused(application.generic("POST", concrete("/api/v1/feeds/<feed_id>/run")))[0] == 404


def test_every_scope_has_a_description():
    assert set(MEANINGS) == set(Scope)
