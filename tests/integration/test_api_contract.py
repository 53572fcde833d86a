"""The API conforms to its description for all requests; schemathesis generates them."""

from dataclasses import replace
from uuid import UUID

import pytest
from django.core.wsgi import get_wsgi_application
from django.db import connection
from hypothesis import HealthCheck, Phase, settings
from tests.support import catalog
from tests.support.api import ADMIN, make_key
from tests.support.portal import job

from harvester.api import keys
from harvester.api.app import api
from harvester.feeds.files import artifact_store
from harvester.feeds.models import Feed, FeedRun
from harvester.kernel.ids import uuid7
from harvester.scraping import kept_pages
from harvester.scraping import verbs as scrape_verbs
from harvester.scraping.models import FetchRequest, QuarantineEntry

METHODS = ("get", "post", "put", "patch", "delete")
OPERATIONS = [
    f"{method.upper()} {path}"
    for path, methods in api.get_openapi_schema()["paths"].items()
    for method in methods
    if method in METHODS
]


#: What a feed needs to be run, tested and paused.
READY = {
    "status": "ENABLED",
    "host": "sftp.example.com",
    "path": "/catalog.csv",
    "username": "acme",
    "secret_fields": ["password"],
}


@pytest.fixture
def known(database, settings, monkeypatch):
    """Create one of everything, so that requests also find something; return the parameters of paths."""
    settings.CONFIG = replace(settings.CONFIG, api_rate_per_minute=1_000_000)
    # Each case is also sent with a wrong key, more often than an address may within a minute.
    monkeypatch.setattr(keys, "WRONG_KEYS", replace(keys.WRONG_KEYS, count=1_000_000, burst=1_000_000))
    source = catalog.source(is_display_primary=True, expiry_hours=48)
    number = catalog.offer(source)
    feed = Feed.objects.create(source=source, network="impact", created_by="test", **READY)
    run = catalog.run(source, outcome="HELD", subject_id=feed.pk)
    source.held_run_no, source.held_since = run.no, run.started_at
    source.save()
    with artifact_store().writer() as writer:
        writer.write(b"a file")
        kept = writer.commit().sha256
    FeedRun.objects.create(run=run, feed=feed, products_upserted=3, fetched_hash=kept)
    product = uuid7()
    catalog.insert("products", id=product, title="thing")
    page = catalog.target(source, "https://shop.example/p")
    stored = kept_pages.store_body(b"<html><body>Hammer</body></html>")
    with connection.cursor() as cursor:
        kept_pages.keep(
            cursor, stored, url=page.url, status=200, content_type="text/html", since=0, source_id=source.pk,
            target_id=page.pk,
        )  # fmt: skip
    entry = QuarantineEntry.objects.create(
        source=source, target=page, run_no=1, part_id=uuid7(), reason="NO_AGREEMENT", detail="two prices", version="1",
        adapter_id="structured", page=stored.hash, observed_at=catalog.now(),
        found={"title": "Hammer", "price": "9.99 USD", "availability": "IN_STOCK"},
    )  # fmt: skip
    tried = FetchRequest.objects.create(
        purpose="TRY",
        url=page.url,
        requested_by="test",
        outcome="OFFER",
        result={},
        finished_at=catalog.now(),
    )
    listed = scrape_verbs.create_import(ADMIN, "list", "https://shop.example/q\nnonsense")
    return {
        "source_id": str(source.pk),
        "target_id": str(page.pk),
        "import_id": str(listed.pk),
        "entry_id": str(entry.pk),
        "request_id": str(tried.pk),
        "offer_id": f"{source.pk}.{number}",
        "product_id": str(product),
        "feed_id": str(feed.pk),
        "run_id": str(run.pk),
        "version": 1,
        "job_id": str(job("succeeded", result='{"x": [1]}', progress='{"done": 1, "total": 2, "note": "rows"}')),
    }


@pytest.fixture
def headers():
    _, token = make_key()
    return {"Authorization": f"Bearer {token}"}


@pytest.fixture(scope="module")
def described():
    """The description, and its operations by name; a problem with one of them is raised here."""
    import schemathesis

    schema = schemathesis.openapi.from_dict(api.get_openapi_schema())
    schema.app = get_wsgi_application()
    operations = [result.ok() for result in schema.get_all_operations()]
    return schema, {operation.label: operation for operation in operations}


def test_every_operation_is_tried(described):
    assert sorted(described[1]) == sorted(OPERATIONS)


@pytest.mark.generated
@pytest.mark.parametrize("operation", OPERATIONS)
def test_every_response_conforms_to_the_description(operation, described, known, headers):
    """The requests are made here: the plugin of schemathesis makes those of all operations in every process.

    That takes seconds for each process of the tests, and only one of them sends the requests.
    """
    from schemathesis import checks
    from schemathesis.generation.feedback import FeedbackSources
    from schemathesis.generation.hypothesis import builder
    from schemathesis.pytest._test_builder import build_operation_test
    from schemathesis.python._constants.orchestrator import make_constants_value_source

    # A schema cannot say which combinations of parameters are valid (a sort by price needs a currency), and a 404
    # comes before other checks.
    left_out = [checks.positive_data_acceptance]

    @settings(
        max_examples=12,
        derandomize=True,
        phases=[Phase.explicit, Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    def conforms(case):
        case.call_and_validate(headers=headers, excluded_checks=left_out)
        if case.path_parameters:
            existing = {name: known[name] for name in case.path_parameters}
            case.path_parameters = existing
            negative = [*left_out, checks.negative_data_rejection, checks.unsupported_method, checks.ignored_auth]
            case.call_and_validate(headers=headers, excluded_checks=negative)

    schema, operations = described
    checks.load_all_checks()
    generated = build_operation_test(
        config=schema.config,
        operation=operations[operation],
        test_func=conforms,
        given_kwargs={},
        feedback=FeedbackSources(constants_value_source=make_constants_value_source(schema)),
    )
    generated()
    problems = [
        builder.InvalidHeadersExampleMark, builder.InvalidRegexMark, builder.MissingPathParameters,
        builder.NonSerializableMark, builder.UnsatisfiableExampleMark, builder.UnserializablePayloadMark,
    ]  # fmt: skip
    assert [problem for problem in problems if problem.is_set(generated)] == []


def test_everything_that_exists_is_found(client, known, headers):
    """Without this, the test above might see only 404s."""
    paths = api.get_openapi_schema()["paths"]
    needed = {"/api/v1/offers/lookup": {"sku": "x"}}
    asked = {
        path: client.get(path.format(**known), needed.get(path), headers=headers)
        for path in paths
        if "get" in paths[path]
    }
    assert {path: answer.status_code for path, answer in asked.items()} == dict.fromkeys(asked, 200)
    asked["/api/v1/runs/{run_id}/file"].close()
    assert UUID(asked["/api/v1/feeds/{feed_id}"].json()["held_run_id"]) == UUID(known["run_id"])
