"""Observations of pages, promoted as the run of a source promotes them, without fetching anything."""

from decimal import Decimal

from django.db import connection, transaction

from harvester.catalog import page_products, sources
from harvester.kernel.identity import Identity, IdentityType
from harvester.kernel.ids import uuid7
from harvester.kernel.money import Price
from harvester.kernel.signature import Content
from harvester.kernel.stock import Availability
from harvester.pipeline.baseline import read_baseline
from harvester.pipeline.observations import Observation, ObservationsPromoted, promote_observations
from harvester.runs.models import Run
from tests.support import catalog


def observed(sku, price="10.00", *, at=None, availability=Availability.IN_STOCK, link=None, title=None, **attributes):
    return Observation(
        identity=Identity(type=IdentityType.SKU, value=sku),
        content=Content(title=title or f"Page of {sku}", url=f"https://shop.example/{sku}", sku=sku),
        price=Price(amount=Decimal(price), currency="USD"),
        availability=availability,
        observed_at=at or catalog.now(),
        product_id=link,
        attributes=attributes,
    )


def promote(source, *observations, run=None) -> ObservationsPromoted:
    run = run or page_run(source)
    with transaction.atomic(), connection.cursor() as cursor:
        baseline = read_baseline(cursor, source.pk, lock=True)
        return promote_observations(cursor, baseline, observations, run_no=run.no, run_type="SCRAPE")


def page_run(source) -> Run:
    """A run over pages that was promoted."""
    run = Run.objects.create(
        id=uuid7(), kind="SCRAPE", subject_id=source.pk, source_id=source.pk, status="SUCCEEDED", outcome="PROMOTED",
        trigger="MANUAL", finished_at=catalog.now(),
    )  # fmt: skip
    run.refresh_from_db()
    return run


def confirm(source, *products, at=None) -> None:
    _note(page_products.confirm_observed, source, products, at)


def end(source, *products, at=None) -> None:
    _note(page_products.end_presence, source, products, at)


def _note(verb, source, products, at) -> None:
    with transaction.atomic(), connection.cursor() as cursor:
        sources.locked(source.pk)
        verb(cursor, source.pk, products, at or catalog.now())


def product_of(sku: str) -> int:
    [(number,)] = catalog.fetch("SELECT id FROM source_products WHERE identity_value = %s", sku)
    return number
