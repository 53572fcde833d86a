"""From offers that passed to prices of products, and what their targets keep of them."""

import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from typing import Any, Final

import structlog
from django.conf import settings
from django.db import transaction

from harvester.catalog.models import Source
from harvester.guards.prepared import prepared_cursor
from harvester.kernel.currencies import MINOR_UNITS
from harvester.kernel.gtin import normalize_gtin
from harvester.kernel.identity import NUMBERS, PRIORITY, Identity, identity_of
from harvester.kernel.link_rules import LinkRules
from harvester.kernel.money import Price
from harvester.kernel.rejects import Rejected
from harvester.kernel.signature import Content
from harvester.kernel.urls import canonical_page_url, identity_url, url_hash
from harvester.pipeline.baseline import Baseline
from harvester.pipeline.observations import Observation, promote_observations
from harvester.scraping import alerts, log_events
from harvester.scraping.models import ScrapeTarget
from harvester.scraping.offers import ScrapedOffer, offer_from_json, offer_to_json
from harvester.scraping.states import RUN_KIND, PageOutcome

log = structlog.get_logger(__name__)

#: What a page says about a product and no column has.
ATTRIBUTES: Final = (
    *("caliber", "grain_weight", "round_count", "case_material", "bullet_type", "load_type", "shell_length"),
    *("is_tax_included",),
)
#: Numbers by which a page names its product.
NUMBERS_OF_PRODUCT: Final = ("product_id", "sku", "gtin")
#: Numbers by which it is recognized somewhere else, whatever each of them is called there.
ANY_NUMBER: Final = (*NUMBERS_OF_PRODUCT, "mpn")

#: By which a shop is asked whether a page has changed; columns of a target.
VALIDATORS: Final = ("etag", "last_modified")

# The validators of the page count only while no newer page of the target was read: without them, the next request
# cannot be answered with "not modified" relative to a page that was never written.
_WRITTEN = """
UPDATE scrape_targets t SET last_seen = r.last_seen, pinned_product_id = r.product_id,
    pinned = coalesce(t.pinned, r.pinned), updated_at = %(moment)s,
    etag = CASE WHEN t.last_scraped_at <= r.observed_at THEN r.etag ELSE t.etag END,
    last_modified = CASE WHEN t.last_scraped_at <= r.observed_at THEN r.last_modified ELSE t.last_modified END
FROM jsonb_to_recordset(%(rows)s::jsonb) AS r (target_id uuid, product_id bigint, observed_at timestamptz,
    last_seen jsonb, pinned jsonb, etag text, last_modified text)
WHERE t.id = r.target_id
"""
_SUPERSEDED = """
UPDATE quarantine q SET status = 'SUPERSEDED', resolved_at = %(moment)s, resolved_by = 'scraping',
    note = 'A newer page of it was read well.'
FROM unnest(%(targets)s::uuid[], %(moments)s::timestamptz[]) AS r (target_id, at)
WHERE q.target_id = r.target_id AND q.status = 'OPEN' AND q.observed_at <= r.at RETURNING q.reason
"""
# The newest price of the product that a target shows, from pages or a feed.
_PRICE_BEFORE = """
SELECT c.amount, c.currency FROM source_products k
CROSS JOIN LATERAL (
    SELECT amount, currency FROM prices c
    WHERE c.source_id = k.source_id AND c.source_product_id = k.id
      AND NOT EXISTS (SELECT FROM runs r WHERE r.no = c.run_no AND r.ignored_at IS NOT NULL)
    ORDER BY c.observed_at DESC, c.run_no DESC LIMIT 1
) c
WHERE k.source_id = %(source)s AND (k.id = %(product)s OR (
    %(product)s::bigint IS NULL AND k.identity_type = %(type)s AND k.identity_value = %(value)s))
LIMIT 1
"""
_LINKED = "SELECT title, item_id, sku, gtin, mpn FROM source_products WHERE (source_id, id) = (%s, %s)"


@dataclass(frozen=True, kw_only=True)
class Reading:
    """An offer that passed, with what its page and its run say.

    Attributes:
        target: the page.
        offer: what it says.
        observed_at: when.
        run_no: the run that read it.
        validators: by which the shop is asked whether the page has changed since.
    """

    target: ScrapeTarget
    offer: ScrapedOffer
    observed_at: datetime
    run_no: int
    validators: Mapping[str, str] = field(default_factory=dict)


@dataclass(kw_only=True)
class Promoted:
    """The result of promoting readings.

    Attributes:
        prices: run -> prices written.
        new: run -> new products.
        superseded: places of readings for which a newer one was promoted before.
    """

    prices: dict[int, int] = field(default_factory=lambda: defaultdict(int))
    new: dict[int, int] = field(default_factory=lambda: defaultdict(int))
    superseded: set[int] = field(default_factory=set)


def promote(cursor: Any, baseline: Baseline, readings: Sequence[Reading]) -> Promoted:
    """Write the prices of readings. The source is locked by `baseline`, and the targets are locked after it."""
    done = Promoted()
    by_run: dict[int, list[int]] = defaultdict(list)
    for place, reading in enumerate(readings):
        by_run[reading.run_no].append(place)
    written: dict[int, int] = {}
    for run_no, places in sorted(by_run.items()):
        observations = [observation_of(readings[place]) for place in places]
        found = promote_observations(cursor, baseline, observations, run_no=run_no, run_type=RUN_KIND)
        done.prices[run_no] += found.prices
        done.new[run_no] += found.new
        done.superseded |= {places[inner] for inner in found.superseded}
        written |= {places[inner]: product for inner, product in found.products.items()}
        for event, inner_places in (
            (log_events.LINKED_PRODUCT_DELETED, found.unlinked),
            (log_events.LINK_AND_IDENTITY_DIFFER, found.overruled),
        ):
            for inner in inner_places:
                _warn(event, readings[places[inner]])
    rows = [_kept(readings[place], product) for place, product in sorted(written.items())]
    cursor.execute(_WRITTEN, {"rows": json.dumps(rows), "moment": baseline.moment})
    supersede_entries(cursor, baseline, [(row["target_id"], readings[place].observed_at) for place, row in zip(
        sorted(written), rows, strict=True)])  # fmt: skip
    return done


def supersede_entries(cursor: Any, baseline: Baseline, read: Sequence[tuple[Any, datetime]]) -> None:
    """Close what waits in quarantine of targets of a source that were read well at some time."""
    targets, moments = [target for target, _ in read], [at for _, at in read]
    cursor.execute(_SUPERSEDED, {"targets": targets, "moments": moments, "moment": baseline.moment})
    if PageOutcome.ZERO_PRICE_EXTRACTED in {reason for (reason,) in cursor.fetchall()}:
        alerts.zero_prices_changed(baseline.source_id, str(Source.objects.get(pk=baseline.source_id)))


def observation_of(reading: Reading) -> Observation:
    """Return what is promoted of a reading.

    Raises:
        Rejected: an identifier or the address cannot be used.
    """
    target, offer = reading.target, reading.offer
    rules = LinkRules(allowed_networks=settings.CONFIG.egress_networks)
    url = identity_url(target.url, rules)
    attributes = {name: getattr(offer, name) for name in ATTRIBUTES}
    for name, price in (("shipping", offer.shipping), ("cost_per_round", offer.cost_per_round)):
        attributes[name] = str(price) if price else None
    content = Content(
        title=offer.title,
        url=target.url,
        image=offer.image,
        brand=offer.brand,
        product_id=offer.product_id,
        sku=offer.sku,
        gtin=offer.gtin,
        mpn=offer.mpn,
        url_hash=url_hash(url),
    )
    return Observation(
        identity=_identity(target, offer, rules),
        content=content,
        price=offer.price,
        original=offer.original,
        availability=offer.availability,
        observed_at=reading.observed_at,
        product_id=target.product_id,
        attributes={name: value for name, value in attributes.items() if value is not None},
    )


def product_key(target: ScrapeTarget, offer: ScrapedOffer) -> str:
    """Return what is the same for two pages of one product."""
    if target.product_id or target.pinned_product_id:
        return str(target.product_id or target.pinned_product_id)
    identity = identity_in(target, offer)
    return f"{identity.type}:{identity.value}"


def other_product(target: ScrapeTarget, offer: ScrapedOffer) -> str | None:
    """Return how an offer names another product than the one that its target is pinned to; naming none is fine."""
    pinned = target.pinned or {}
    for name in NUMBERS_OF_PRODUCT:
        before, now = pinned.get(name), getattr(offer, name)
        if before and now and _compared(name, before) != _compared(name, now):
            return f"The page names the {name.replace('_', ' ')} {now}; it was {before} before."
    return None


def other_after_redirect(target: ScrapeTarget, offer: ScrapedOffer, url: str | None) -> str | None:
    """Return why a page to which the shop redirects may be of another product; None if it is the same one.

    Shops redirect a product that they no longer sell to its successor. Without a number or the title that was known
    before, the price there is not believed. The first page of a target that is not linked has nothing to compare.
    """
    if not url or _is_same_page(url, target.url):
        return None
    known: list[Mapping[str, Any]] = [target.pinned or {}, (target.last_seen or {}).get("offer", {})]
    if target.product_id:
        with prepared_cursor() as cursor:
            cursor.execute(_LINKED, [target.source_id, target.product_id])
            row = cursor.fetchone()
        if row:
            known.append(dict(zip(("title", "product_id", "sku", "gtin", "mpn"), row, strict=True)))
    titles = {" ".join(each["title"].lower().split()) for each in known if each.get("title")}
    numbers = {_compared(name, str(each[name])) for each in known for name in ANY_NUMBER if each.get(name)}
    named = {_compared(name, value) for name in ANY_NUMBER if (value := getattr(offer, name))}
    is_same = " ".join(offer.title.lower().split()) in titles or bool(numbers & named)
    if is_same or not (titles or numbers):
        return None
    return (
        f"The shop redirects to {url}, and neither a number nor the title there is that of the product. "
        "If it is the same product all the same, write what was read there."
    )


def _is_same_page(url: str, other: str) -> bool:
    try:
        return canonical_page_url(url) == canonical_page_url(other)
    except Rejected:
        return False


def price_before(target: ScrapeTarget, offer: ScrapedOffer) -> Price | None:
    """Return what the product of a target cost when it was last written."""
    if target.last_seen:
        return offer_from_json(target.last_seen["offer"]).price
    identity = identity_in(target, offer)
    values = {"product": target.product_id, "type": NUMBERS[identity.type], "value": identity.value}
    with prepared_cursor() as cursor:
        cursor.execute(_PRICE_BEFORE, {"source": target.source_id, **values})
        row = cursor.fetchone()
    return Price(amount=_exact(*row), currency=row[1]) if row else None


def identity_in(target: ScrapeTarget, offer: ScrapedOffer) -> Identity:
    """Return the identity of the product that an offer of a target is written to unless it is linked."""
    return _identity(target, offer, LinkRules(allowed_networks=settings.CONFIG.egress_networks))


def _identity(target: ScrapeTarget, offer: ScrapedOffer, rules: LinkRules) -> Identity:
    """Return the identity of the product: the one that it was first written with, or that of the offer.

    A page that stops naming its SKU must not become a second product. The address is the one that people gave, never
    one that the page or a redirect names.
    """
    kept = (target.pinned or {}).get("identity")
    if kept:
        return Identity(type=next(each for each in PRIORITY if each.value == kept["type"]), value=kept["value"])
    return identity_of(product_id=offer.product_id, sku=offer.sku, url=target.url, rules=rules)


def _kept(reading: Reading, product_id: int) -> dict[str, Any]:
    """What a target keeps of the offer that was written."""
    target, offer = reading.target, reading.offer
    rules = LinkRules(allowed_networks=settings.CONFIG.egress_networks)
    identity = _identity(target, offer, rules)
    pinned: dict[str, Any] = {name: getattr(offer, name) for name in NUMBERS_OF_PRODUCT if getattr(offer, name)}
    pinned["identity"] = {"type": identity.type.value, "value": identity.value}
    at = reading.observed_at.isoformat()
    return {
        "target_id": str(target.pk),
        "product_id": product_id,
        "observed_at": at,
        "last_seen": {"offer": offer_to_json(offer), "observed_at": at, "run_no": reading.run_no},
        "pinned": pinned,
        **{name: reading.validators.get(name) for name in VALIDATORS},
    }


def _compared(name: str, value: str) -> str:
    gtin = normalize_gtin(value) if name == "gtin" else None
    return (gtin.value.zfill(14) if gtin else value).strip().lower()


def _exact(amount: Decimal, currency: str) -> Decimal:
    """Return an amount as it is stored, with exactly the decimals of its currency."""
    return amount.quantize(Decimal(1).scaleb(-MINOR_UNITS[currency]))


def _warn(event: str, reading: Reading) -> None:
    fields = {"source_id": str(reading.target.source_id), "target_id": str(reading.target.pk), "run_no": reading.run_no}
    fields["product_id"] = str(reading.target.product_id)
    transaction.on_commit(lambda: log.warning(event, **fields))
