"""Rows of feeds and catalogs, put there directly: what happened long ago and how it ended."""

from datetime import timedelta

from django.db import connection
from django.utils import timezone

from harvester.catalog.models import Retailer, Source
from harvester.feeds.models import Feed, FeedRun
from harvester.runs.models import Run


def make_source(name: str = "Shop", **fields) -> Source:
    retailer = Retailer.objects.create(name=name)
    return Source.objects.create(
        **{"retailer": retailer, "name": name, "kind": "AFFILIATE_FEED", "expiry_hours": 48, **fields}
    )


def make_feed(name: str = "Shop", **fields) -> Feed:
    return Feed.objects.create(source=make_source(name, **fields), network="impact", created_by="test")


def make_run(feed: Feed, *, days: float = 0, status: str = "SUCCEEDED", outcome: str | None = "PROMOTED", **fields):
    """A run with its figures, a sample and the ids it did not see."""
    began = timezone.now() - timedelta(days=days)
    ended = None if status == "RUNNING" else began + timedelta(minutes=1)
    made = Run.objects.create(
        kind="AFFILIATE_FEED",
        subject_id=feed.pk,
        source_id=feed.source_id,
        trigger="SCHEDULED",
        status=status,
        outcome=outcome,
        started_at=began,
        finished_at=ended,
        **fields,
    )
    made.refresh_from_db()
    FeedRun.objects.create(run=made, feed=feed)
    write("INSERT INTO feed_run_samples (run_id, code, place, line, row) VALUES (%s, 'X', 1, 1, '')", made.pk)
    write("INSERT INTO run_absences VALUES (%s, %s, 1, '{1,2}')", feed.source_id, made.no)
    return made


def make_product(feed: Feed, product_id: int, run_no: int) -> None:
    write(
        "INSERT INTO source_products (source_id, id, identity_type, identity_value, content_hash, title, url, "
        "created_run_no, updated_run_no, created_at, updated_at) "
        "VALUES (%s, %s, 1, %s, 0, 'Thing', 'https://shop.test/', %s, %s, now(), now())",
        feed.source_id,
        product_id,
        str(product_id),
        run_no,
        run_no,
    )


def make_price(feed: Feed, product_id: int, run_no: int) -> None:
    write(
        "INSERT INTO prices (source_id, source_product_id, observed_at, run_no, signature, run_type, amount, currency, "
        "in_stock, created_at) VALUES (%s, %s, now(), %s, gen_random_uuid(), 'AFFILIATE_FEED', 5, 'USD', true, now())",
        feed.source_id,
        product_id,
        run_no,
    )


def write(statement: str, *values: object) -> None:
    with connection.cursor() as cursor:
        cursor.execute(statement, values)
