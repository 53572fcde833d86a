"""Retailers, sources and feeds, each feed with a story: most run well, some need somebody."""

import base64
import hashlib
import itertools
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from uuid import UUID

from django.db import transaction

from harvester.catalog.models import Retailer, Source
from harvester.catalog.states import SourceKind
from harvester.feeds.models import Feed
from harvester.feeds.states import FeedStatus
from harvester.guards import secrets
from harvester.kernel.signature import CONTENT_VERSION
from tests.bench.seeding.plan import Plan
from tests.bench.seeding.words import BRANDS, SHOP_WORDS

#: Runs are kept this long; an hour less, so that the clean-up finds nothing to do at once.
HISTORY = timedelta(days=30, hours=-1)
HOURS = (4, 6, 6, 12, 12, 24)
#: The largest catalog is to the smallest about as one of ten thousand products is to one of three hundred.
FLATNESS = 20
#: Every so many sources one shares its retailer with the one before, and is not shown.
SECOND_SOURCES = 25
CREDENTIALS = {"password": "made-up-for-a-seeded-feed"}


class Story(StrEnum):
    """What is going on with a feed."""

    ORDINARY = "ORDINARY"
    QUIET = "QUIET"  # its file was as before
    LATE = "LATE"
    PAUSED = "PAUSED"
    NEW_KEY = "NEW_KEY"  # its server shows a host key that nobody approved
    HELD = "HELD"
    FAILING = "FAILING"
    DISABLED = "DISABLED"
    DRAFT = "DRAFT"  # has never run


#: How the newest runs ended, and how many of them.
NEWEST = {
    Story.QUIET: ("SKIPPED", 1),
    Story.NEW_KEY: ("FAILED", 1),
    Story.HELD: ("HELD", 1),
    Story.FAILING: ("FAILED", 2),
    Story.DISABLED: ("FAILED", 3),
}
#: Of each fifty feeds these have a special state.
_STORIES = {
    7: Story.HELD, 13: Story.LATE, 17: Story.NEW_KEY, 23: Story.DISABLED, 31: Story.FAILING, 37: Story.PAUSED,
    41: Story.DRAFT,
}  # fmt: skip
_CYCLE = 50
_QUIET = 4
_STATUS = {Story.PAUSED: FeedStatus.PAUSED, Story.DISABLED: FeedStatus.DISABLED, Story.DRAFT: FeedStatus.DRAFT}


@dataclass(frozen=True, kw_only=True)
class Shop:
    """A source with its feed, and how much of everything it gets.

    Attributes:
        number: counted from 1 over everything that was ever seeded here.
        story: what is going on.
        hours: between two runs, by its schedule.
        runs: how many it has.
        first: the number of its first product.
        products: how many it has.
        ids: of the retailer, the source and the feed.
    """

    number: int
    story: Story
    hours: int
    runs: int
    first: int
    products: int
    ids: tuple[UUID, UUID, UUID]

    @property
    def spacing(self) -> timedelta:
        return min(timedelta(hours=self.hours), HISTORY / self.runs) if self.runs else HISTORY

    @property
    def phase(self) -> timedelta:
        """How long ago the newest run began."""
        return self.spacing * random.Random(self.number).uniform(0.05, 0.9)


def shops(plan: Plan, start: int) -> list[Shop]:
    """Who there is, and what each has; exactly as much in all as planned."""
    numbers = range(start + 1, start + plan.feeds + 1)
    stories = [_story(number) for number in numbers]
    busy = [story is not Story.DRAFT for story in stories]
    runs = _shares(plan.runs, [float(is_busy) for is_busy in busy])
    products = _shares(plan.offers, [is_busy / (FLATNESS + place) for place, is_busy in enumerate(busy)])
    firsts = itertools.accumulate(products, initial=0)
    return [
        _shop(plan.seed, number, story, counts)
        for number, story, *counts in zip(numbers, stories, runs, firsts, products, strict=False)
    ]


def _shop(seed: int, number: int, story: Story, counts: Sequence[int]) -> Shop:
    chance = random.Random(f"{seed}:{number}")
    runs, first, products = counts
    return Shop(
        number=number,
        story=story,
        hours=chance.choice(HOURS),
        runs=runs,
        first=first,
        products=products,
        ids=(_id(chance, number), _id(chance, number), _id(chance, number)),
    )


def _story(number: int) -> Story:
    return _STORIES.get(number % _CYCLE) or (Story.ORDINARY if number % _QUIET else Story.QUIET)


def _shares(total: int, weights: Sequence[float]) -> list[int]:
    """Whole parts of a total by weight; not one is lost to rounding."""
    whole, given, so_far, parts = sum(weights), 0, 0.0, []
    for weight in weights:
        so_far += weight
        part = round(total * so_far / whole) - given
        parts.append(part)
        given += part
    return parts


def _id(chance: random.Random, number: int) -> UUID:
    """Like those that the application makes: the time in front, here a made-up one that grows with the number."""
    made_up_time = 1_767_225_600_000 + number
    return UUID(int=made_up_time << 80 | 7 << 76 | chance.getrandbits(12) << 64 | 2 << 62 | chance.getrandbits(62))


def write_shops(made: Sequence[Shop], moment: datetime) -> None:
    """Retailers, sources, feeds and their credentials."""
    with transaction.atomic():
        Retailer.objects.bulk_create(_retailers(made))
        Source.objects.bulk_create(_source(shop, made) for shop in made)
        Feed.objects.bulk_create(_feed(shop, moment) for shop in made)
        for shop in made:
            secrets.put("feed", shop.ids[2], CREDENTIALS)


def _retailers(made: Sequence[Shop]) -> Iterator[Retailer]:
    for shop in made:
        if not _is_second(shop, made):
            yield Retailer(
                id=shop.ids[0], name=_name(shop.number), website=f"https://{domain(shop.number)}",
                domain=domain(shop.number),
            )  # fmt: skip


def _is_second(shop: Shop, made: Sequence[Shop]) -> bool:
    return shop.number % SECOND_SOURCES == 0 and shop is not made[0]


def _source(shop: Shop, made: Sequence[Shop]) -> Source:
    second = _is_second(shop, made)
    owner = made[shop.number - made[0].number - 1] if second else shop
    return Source(
        id=shop.ids[1],
        retailer_id=owner.ids[0],
        name=f"{_name(shop.number)} by {network(shop.number).replace('_', ' ').title()}",
        kind=SourceKind.AFFILIATE_FEED,
        url=f"https://{domain(shop.number)}",
        is_display_primary=not second,
        affiliate_network=network(shop.number).upper(),
        expiry_hours=48 if shop.hours < max(HOURS) else 72,
        max_hold_hours=24 if shop.number % (2 * _CYCLE) < _CYCLE else 168,
        content_hash_version=CONTENT_VERSION,
    )


def _feed(shop: Shop, moment: datetime) -> Feed:
    status = _STATUS.get(shop.story, FeedStatus.ENABLED)
    late = timedelta(hours=-3)
    wait = late if shop.story is Story.LATE else timedelta(hours=shop.hours) - min(shop.phase, timedelta(hours=3))
    newest, failures = NEWEST.get(shop.story, ("", 0))
    key, other = _host_key(shop.number), _host_key(-shop.number)
    return Feed(
        id=shop.ids[2],
        source_id=shop.ids[1],
        network=network(shop.number),
        status=status,
        schedule_hours=shop.hours,
        next_run_at=moment + wait if status == FeedStatus.ENABLED else None,
        consecutive_failures=failures if newest == "FAILED" else 0,
        last_run_at=moment - shop.phase if shop.runs else None,
        host=f"sftp.{domain(shop.number)}",
        path=f"/outgoing/catalog-{shop.number}.csv.gz",
        username=f"harvester-{shop.number}",
        host_keys="" if shop.story is Story.DRAFT else key,
        seen_host_key=other if shop.story in (Story.NEW_KEY, Story.DRAFT) else key,
        secret_version=1,
        secret_fields=list(CREDENTIALS),
        compression="GZIP",
        created_by="seed",
    )


def _name(number: int) -> str:
    return f"{BRANDS[number % len(BRANDS)]} {SHOP_WORDS[number % len(SHOP_WORDS)]} {number}"


def domain(number: int) -> str:
    return f"shop-{number}.example"


def network(number: int) -> str:
    return "google_merchant" if number % 3 == 0 else "impact"


def _host_key(number: int) -> str:
    """A key of the right form that no server has."""
    kind = b"ssh-ed25519"
    body = hashlib.sha256(str(number).encode()).digest()
    wire = len(kind).to_bytes(4, "big") + kind + len(body).to_bytes(4, "big") + body
    return f"ssh-ed25519 {base64.b64encode(wire).decode()}"
