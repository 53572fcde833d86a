"""Rows of the catalog, written directly: what a test is about stands in the test."""

import datetime as dt
import itertools
import json
import uuid
from decimal import Decimal
from typing import Any

from django.db import connection

from harvester.catalog.models import Retailer, Source
from harvester.kernel.ids import uuid7
from harvester.runs.models import Run
from harvester.scraping.models import ScrapeTarget

_numbers = itertools.count(1)
CONTENT_HASH = 1


def now() -> dt.datetime:
    """The database's clock, to which every age is relative."""
    return fetch("SELECT clock_timestamp()")[0][0]


def hours(number: float) -> dt.timedelta:
    return dt.timedelta(hours=number)


def fetch(query: str, *values: object) -> list[tuple]:
    with connection.cursor() as cursor:
        cursor.execute(query, values or None)
        return cursor.fetchall() if cursor.description else []


def insert(table: str, **values: object) -> None:
    names = ", ".join(values)
    places = ", ".join(["%s"] * len(values))
    fetch(f"INSERT INTO {table} ({names}) VALUES ({places})", *values.values())


def retailer(name: str = "", domain: str | None = None) -> Retailer:
    name = name or f"retailer {next(_numbers)}"
    return Retailer.objects.create(name=name, domain=domain)


def source(owner: Retailer | None = None, kind: str = "AFFILIATE_FEED", **values: Any) -> Source:
    """A source that was promoted just now, unless the values say otherwise."""
    values = {
        "name": f"source {next(_numbers)}", "last_promoted_at": now(), "visibility": "ELIGIBLE", **values
    }  # fmt: skip
    return Source.objects.create(retailer=owner or retailer(), kind=kind, **values)


def target(of: Source, url: str, **values: Any) -> ScrapeTarget:
    """A page of a source, which gets the adapter that serves any shop if it has none."""
    if of.adapter_id is None:
        of.adapter_id = "structured"
        of.save(update_fields=["adapter_id"])
    given = {"canonical_url": url, "created_by": "test", **values}
    return ScrapeTarget.objects.create(source=of, adapter_id=of.adapter_id, url=url, **given)


def run(of: Source, outcome: str | None = "PROMOTED", kind: str = "AFFILIATE_FEED", **values: Any) -> Run:
    """An ended run, newer than every other."""
    values = {"subject_id": of.pk, "status": "SUCCEEDED", "trigger": "SCHEDULED", "finished_at": now(), **values}
    made = Run.objects.create(id=uuid7(), source_id=of.pk, kind=kind, outcome=outcome, **values)
    made.refresh_from_db()
    if outcome in {"PROMOTED", "APPROVED"}:
        Source.objects.filter(pk=of.pk).update(last_promoted_run_no=made.no)
    return made


def product(of: Source, run_no: int = 0, **values: Any) -> int:
    [[number]] = fetch("SELECT nextval('source_products_id')")
    moment = now()
    values = {
        "title": f"thing {number}",
        "url": f"https://shop.example/{number}",
        "identity_type": 3,
        "identity_value": f"sku-{number}",
        "content_hash": CONTENT_HASH,
        "created_run_no": run_no,
        "updated_run_no": run_no,
        "created_at": moment,
        "updated_at": moment,
        **values,
    }
    insert("source_products", source_id=of.pk, id=number, **values)
    return number


def price(of: Source, product_id: int, amount: str, *, run_no: int = 0, **values: Any) -> None:
    moment = values.get("observed_at") or now()
    values = {
        "observed_at": moment,
        "created_at": moment,
        "signature": uuid.uuid4(),
        "run_type": "AFFILIATE_FEED",
        "currency": "USD",
        "in_stock": True,
        **values,
    }
    insert("prices", source_id=of.pk, source_product_id=product_id, run_no=run_no, amount=Decimal(amount), **values)


def page_products(of: Source, *products: int, leads_for: float | None = None) -> None:
    """Pages of these products were read just now; they lead for so many hours, or not at all."""
    moment = now()
    until = None if leads_for is None else moment + hours(leads_for)
    for number in products:
        insert("page_products", source_id=of.pk, product_id=number, seen_at=moment, leads_until=until)


def offer(of: Source, amount: str = "10.00", *, run_no: int = 0, **presence: Any) -> int:
    """A product with one price and its offer, as promotion leaves them; presence is seen_until and absence_accepted."""
    from harvester.catalog import offers

    number = product(of, run_no)
    price(of, number, amount, run_no=run_no)
    offers.recompute(of.pk, [number])
    fetch(
        "UPDATE offers SET seen_until = %s, absence_accepted = %s WHERE source_id = %s AND product_id = %s",
        presence.get("seen_until"),
        presence.get("absence_accepted", False),
        of.pk,
        number,
    )
    return number


def recompute_offers(of: Source, numbers: list[int]) -> None:
    """Offers and their words as the prices and contents say; their presence is forgotten."""
    from harvester.catalog import offers

    for table in ("offers", "offer_words"):
        fetch(f"DELETE FROM {table} WHERE source_id = %s AND product_id = ANY (%s)", of.pk, numbers)
    offers.recompute(of.pk, numbers)


def details(verb: str) -> list[dict]:
    """Return the details of audit events without the names of the changed fields."""
    return [json.loads(row[0]) for row in fetch("SELECT detail FROM audit_events WHERE verb = %s ORDER BY id", verb)]


def audited() -> list[tuple]:
    return fetch("SELECT verb, object_type, changed FROM audit_events ORDER BY id")
