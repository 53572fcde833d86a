"""An installation in small: a few rows of every table, written by the verbs and jobs that write them for real."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from itertools import count
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest import mock
from uuid import UUID

from django.conf import settings
from django.contrib.auth.hashers import make_password
from django.db import connection, connections, transaction
from tests.support import scrape_world
from tests.support.actor_server import ActorServer, posts
from tests.support.feed_world import World
from tests.support.feeds import row
from tests.support.jobs import change
from tests.support.sftp_server import HOST, PASSWORD, USERNAME, SftpServer, WellBehaved
from tests.support.shop_server import ShopServer, page
from tests.support.tables import rows
from tests.support.workers import run_until_idle

from harvester.catalog import corrections, display_primary, retailers, review_queue, sources
from harvester.catalog.models import Retailer, Source
from harvester.engine import lanes, scheduler
from harvester.engine.enqueue import enqueue
from harvester.engine.models import Job
from harvester.evidence import verbs as evidence
from harvester.feeds import decisions, verbs
from harvester.feeds.jobs import NOTE_DAYS, RUN
from harvester.feeds.models import FeedRun
from harvester.guards import limits, vault
from harvester.kernel import ids
from harvester.kernel.actor import Actor, system
from harvester.ops import alerts, api_keys, idempotency, jobs, users
from harvester.ops.models import Role, User
from harvester.ops.scopes import Scope
from harvester.runs.models import Run
from harvester.scraping import verbs as scraping

#: What seals the credentials in a dump. Not a secret: it has never sealed anything else.
KEY = "dGhpcyBrZXkgb3BlbnMgZHVtcHMgb2YgdGhlIHRlc3Q="
LOGIN = "correct horse battery staple"
#: The moment of each dump, by the clock in it. Steps of the example are days apart, and each takes no time.
MOMENT = "2026-11-15 12:00:00+00"
#: In place of what the server of the example makes up.
HOST_KEY = "AAAAC3NzaC1lZDI1NTE5AAAAIIgqRN8PM3+VDuTw0RnFVPWnYw4mPZCdxjjWqwKcTyzU"
FINGERPRINT = "SHA256:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"
#: Days.
FAR_AWAY = 36_500
TRACEBACK = "Traceback (most recent call last):\n  ..."


class Partner(World):
    """A shop, its source and its feed, all made by verbs."""

    def __init__(self, admin: Actor, server: SftpServer, name: str, **settings: object) -> None:
        self.admin, self.server, self.name = admin, server, name
        website = f"https://{name.lower()}.example"
        self.retailer = retailers.create(admin, name=name, website=website)
        self.source = sources.create(
            admin, self.retailer.id, name=f"{name} by Impact", kind="AFFILIATE_FEED", url=website, upc_trusted=True
        )
        display_primary.set_display_primary(admin, self.source.id)
        found = {"network": "impact", "host": HOST, "port": server.port, "path": f"/{name}/catalog.txt"}
        self.feed = verbs.create(admin, self.source.id, {**found, "expiry_hours": 168, **settings})
        verbs.change_credentials(admin, self.feed.id, username=USERNAME, password=PASSWORD)
        verbs.approve_host_key(admin, self.feed.id, str(server.host_key))
        verbs.enable(admin, self.feed.id)
        self.feed.refresh_from_db()

    @property
    def file(self) -> Path:
        return self.server.root / self.name / "catalog.txt"

    def expect(self, outcome: str | None, trigger: str = "SCHEDULED") -> Run:
        run = self.run(trigger)
        assert run.outcome == outcome, (run.outcome, run.error)
        return run


def fill(root: Path) -> dict[str, str]:
    """Fill an empty database that was just migrated; return what to replace in its dump.

    Egress to this machine has to be allowed; `root` is an empty folder.
    """
    with (
        same_every_time(),
        SftpServer(root, behaviour=WellBehaved) as server,
        ShopServer() as pages,
        ActorServer() as actors,
    ):
        admin = _people()
        shop = Partner(admin, server, "Kestrel", schedule_hours=6, thresholds={"shock_least": 30})
        other = Partner(admin, server, "Osprey")
        _history_of_a_feed(shop)
        _other_feeds(admin, server, other)
        _products(shop)
        _pages_and_actors(admin, pages, actors)
        _jobs(admin, other)
        enqueue(NOTE_DAYS, {})
        run_until_idle(threads=1)
        shop.shrink()
        _jobs_that_are_open(other)
        scheduler.register_all()
        with connections["owner"].cursor() as cursor:
            _settle(cursor)
        return {
            str(server.host_key).split()[1]: HOST_KEY,
            server.host_key.fingerprint: FINGERPRINT,
            pages.url: "http://shop.example",
            actors.url: "http://actors.example",
        }


def _people() -> Actor:
    setup = system("setup")
    admin = users.create(setup, "olga", LOGIN, Role.ADMIN, email="olga@shop.example").actor
    users.create(admin, "vera", LOGIN, Role.VIEWER)
    User.objects.update(password=make_password(LOGIN, salt="0123456789abcdef012345"))
    key, _ = api_keys.create(admin, "Shop site", [Scope.OFFERS_READ, Scope.FEEDS_OPERATE])
    old, _ = api_keys.create(admin, "Old site", [Scope.OFFERS_READ])
    api_keys.revoke(admin, old.id)
    with transaction.atomic():
        assert idempotency.claim(key.id, "pause-1", "fingerprint") is None
        idempotency.keep(key.id, "pause-1", idempotency.Answer(status=200, headers={}, body="{}"))
    limits.take("api.key", limits.RateLimit(count=60, seconds=60.0))
    with connection.cursor() as cursor:
        cursor.execute("INSERT INTO django_session VALUES ('0123456789abcdefghijklmnopqrstuv', 'data', now())")
    return admin


def _history_of_a_feed(shop: Partner) -> None:
    """Runs with every outcome, one of them ignored, one that failed, and corrections of every kind."""
    all_of_them = range(100, 140)
    shop.put(*all_of_them)
    shop.expect("PROMOTED")
    a_day_later()
    shop.expect("SKIPPED")
    a_day_later()
    # A changed price and title, a new product, a missing one, and a row that is rejected.
    other_rows = [row(100, Price="1.25"), row(101, Name="Thing 101, blue"), 140, row(141, Price="free")]
    shop.put(*other_rows, *all_of_them[2:-1])
    shop.expect("PROMOTED")
    a_day_later()
    shop.put(*(row(number, Price="9.99") for number in all_of_them[:3]), *all_of_them[3:-1], 140)
    wrong = shop.expect("PROMOTED")
    a_day_later()
    decisions.ignore(shop.admin, wrong.id, "prices of another shop")
    product = {"scope": "PRODUCT", "source_id": shop.source.id}
    ten, eleven, twelve = (_number(shop, sku) for sku in ("S-110", "S-111", "S-112"))
    corrections.create(shop.admin, **product, product_id=ten, action="IGNORE", reason="not for sale")
    corrections.create(
        shop.admin, **product, product_id=eleven, action="SET", set_amount="1.05", set_currency="USD", reason="typo"
    )
    revoked = corrections.create(
        shop.admin, **product, product_id=twelve, action="MULTIPLIER", multiplier="0.5", reason="pairs", extent="WINDOW"
    )
    corrections.revoke(shop.admin, revoked.id)
    run_until_idle(threads=1)
    a_day_later()
    shop.put_bytes(b"nothing that anybody could read\n")
    shop.expect(None)
    a_day_later()
    shop.put(*all_of_them[:3], 200)
    shop.reject(shop.expect("HELD"))
    a_day_later()
    shop.put(*all_of_them[:20])
    shop.approve(shop.expect("HELD"))
    a_day_later()
    shop.put(*all_of_them[:2])
    held = shop.expect("HELD")
    a_day_later()
    shop.put(row(100, Name="Thing 100, red"), *all_of_them[1:], 142)
    shop.expect("PROMOTED")
    assert Run.objects.get(pk=held.pk).outcome == "OVERTAKEN"
    a_day_later()


def _other_feeds(admin: Actor, server: SftpServer, other: Partner) -> None:
    other.put(*range(300, 306))
    other.expect("PROMOTED")
    sources.create(admin, other.retailer.id, name="Osprey itself", kind="DIRECT")
    former = Partner(admin, server, "Merlin")
    verbs.pause(admin, former.feed.id)
    verbs.retire(admin, former.feed.id)
    with transaction.atomic():
        alerts.raise_alert("EXAMPLE", "example", "Something happened", "It is over.", severity="info")
    with transaction.atomic():
        alerts.resolve_alert("example", "It was an example.")


def _products(shop: Partner) -> None:
    run_until_idle(threads=1)
    first, second = sorted(_number(shop, sku) for sku in ("S-100", "S-101"))
    review_queue.create(shop.admin, shop.source.id, first)
    review_queue.skip(shop.admin, shop.source.id, second, "sample")


def _pages_and_actors(admin: Actor, pages: ShopServer, actors: ActorServer) -> None:
    """A run over two pages, one of them in quarantine; an actor's run that was promoted, and one that is held."""
    retailer = Retailer.objects.create(name="Heron", website="https://heron.example", domain="heron.example")
    source = sources.create(admin, retailer.id, name="Heron's pages", kind="DIRECT", url=pages.url)
    scraping.record_review(admin, source.pk, "Allowed by section 4.")
    scraping.choose_adapter(admin, source.pk, "structured")
    Source.objects.filter(pk=source.pk).update(scrape_enabled=True, scrape_config=scrape_world.FAST)
    pages.pages = {"/p/1": page("Net", "12.00", sku="N-1"), "/p/2": page("Rope", "12.00") + "<p>$14.00</p>"}
    for path in pages.pages:
        scraping.add_target(admin, source.pk, pages.url + path)
    with mock.patch.object(settings, "CONFIG", replace(settings.CONFIG, **scrape_world.CONTACT)):
        read = scraping.run_now(admin, source.pk)
        scrape_world.work(read, threads=1)
    run_until_idle(threads=1)
    assert Run.objects.get(pk=read.pk).outcome == "PROMOTED"
    connection = evidence.connect(admin, "Heron's posts", actor_name="heron~posts", server=actors.url, asked={"n": 9})
    for number, outcome in ((9, "PROMOTED"), (2, "HELD")):
        actors.rows = posts(number)
        evidence.run_now(admin, connection.pk)
        run_until_idle(threads=1)
        assert Run.objects.filter(subject_id=connection.pk).latest("no").outcome == outcome


def _jobs(admin: Actor, other: Partner) -> None:
    """One that failed for good, and one that was cancelled."""
    enqueue(RUN, {"feed_id": str(UUID(int=0)), "trigger": "SCHEDULED"})
    run_until_idle(threads=1)
    cancelled = jobs.enqueue(admin, RUN, {"feed_id": str(other.feed.id), "trigger": "SCHEDULED"}, delay=3600)
    jobs.cancel(admin, cancelled.job_id)
    lanes.set_concurrency("feeds", "example", 2)
    a_day_later()


def _jobs_that_are_open(other: Partner) -> None:
    """One that waits for its next attempt, with its run; one whose worker is gone; one that waits in a lane."""
    other.change(port=1)  # nobody listens there
    job = other.ask()
    assert other.attempt(job).state == "retryable"
    assert FeedRun.objects.get(run__job_id=job).run.status == "RUNNING"
    lost = enqueue(RUN, {"feed_id": str(other.feed.id), "trigger": "MANUAL"}).job_id
    change(
        lost,
        "state = 'running', attempt = 1, lease = %s, worker = 'gone', started_at = now(), heartbeat_at = now()",
        UUID(int=1),
    )
    enqueue(RUN, {"feed_id": str(other.feed.id), "trigger": "MANUAL"}, lane="example", delay=7200)
    states = set(Job.objects.values_list("state", flat=True))
    assert states == {"pending", "running", "retryable", "succeeded", "failed", "cancelled"}, states


def _number(shop: Partner, sku: str) -> int:
    [(number,)] = rows(
        "SELECT id FROM source_products WHERE source_id = %s AND identity_value = %s", shop.source.id, sku
    )
    return number


def a_day_later() -> None:
    """Move everything that happened a day into the past; only the owner can, with the triggers silent."""
    with connections["owner"].cursor() as cursor:
        _move(cursor, "{name} - interval '1 day'", "{name}")


def _settle(cursor: Any) -> None:
    """Replace what differs each time: moments, durations, names of processes, and what the server made up."""
    cursor.execute("SELECT clock_timestamp()")
    [now] = cursor.fetchone()
    elapsed = f"({{name}} - '{now.isoformat()}'::timestamptz)"
    hours = f"round(extract(epoch FROM {elapsed}) / 3600) * interval '1 hour'"
    # Days are keys: in two steps, no row gets the day of one that has not moved yet.
    _move(cursor, "{name}", f"{{name}} + {FAR_AWAY}")
    day = f"'{MOMENT}'::date + ({{name}} - {FAR_AWAY} - '{now.date()}'::date)"
    _move(cursor, f"'{MOMENT}'::timestamptz + {hours}", day)
    for statement in (
        "UPDATE sources SET frozen = round(extract(epoch FROM frozen) / 3600) * interval '1 hour'",
        "UPDATE runs SET duration_ms = 1000 WHERE duration_ms IS NOT NULL",
        "UPDATE runs SET lease = md5('lease ' || job_id)::uuid WHERE lease IS NOT NULL",
        "UPDATE jobs SET lease = md5('lease ' || id)::uuid WHERE lease IS NOT NULL",
        "UPDATE jobs SET worker = 'worker-1' WHERE worker IS NOT NULL",
        f"UPDATE jobs SET traceback = '{TRACEBACK}' WHERE traceback IS NOT NULL",
        "UPDATE job_events SET worker = 'worker-1' WHERE worker IS NOT NULL",
        f"UPDATE periodic_jobs SET next_at = '{MOMENT}'::timestamptz + interval '1 hour'",
        "UPDATE feeds SET port = 22",
        # The address of a page names a port that differs each time.
        "UPDATE source_products SET content_hash = 1, url_hash = repeat('0', 64) WHERE identity_value = 'N-1'",
        "UPDATE runs SET timings = (SELECT coalesce(jsonb_object_agg(key, 100), '{}') FROM jsonb_each(timings))",
    ):
        _silently(cursor, statement)


def _move(cursor: Any, moment: str, day: str) -> None:
    """Change every time and every date, in all tables; `{name}` stands for the column."""
    cursor.execute(
        "SELECT c.relname, array_agg(a.attname::text), array_agg(a.atttypid::regtype::text) "
        "FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid "
        "WHERE c.relnamespace = 'public'::regnamespace AND c.relkind IN ('r', 'p') AND NOT c.relispartition "
        "AND a.atttypid IN ('timestamptz'::regtype, 'date'::regtype) AND a.attnum > 0 AND NOT a.attisdropped GROUP BY 1"
    )
    for table, names, kinds in cursor.fetchall():
        changes = [
            f'"{name}" = CASE WHEN isfinite("{name}") THEN {(day if kind == "date" else moment).format(name=name)} '
            f'ELSE "{name}" END'
            for name, kind in zip(names, kinds, strict=True)
        ]
        _silently(cursor, f"UPDATE {table} SET {', '.join(changes)}")


def _silently(cursor: Any, statement: str) -> None:
    cursor.execute("SET session_replication_role = replica")
    cursor.execute(statement)
    cursor.execute("SET session_replication_role = origin")


@contextmanager
def same_every_time() -> Iterator[None]:
    """Ids, tokens and the noise of the vault count up."""
    numbers = count(1)

    def noise(size: int) -> bytes:
        return next(numbers).to_bytes(size, "big")

    a_time = SimpleNamespace(time_ns=lambda: 1_795_000_000_000_000_000)
    ring = vault.KeyRing.parse(KEY)
    with (
        mock.patch.object(ids, "time", a_time),
        mock.patch.object(ids, "os", SimpleNamespace(urandom=noise)),
        mock.patch.object(vault, "secrets", SimpleNamespace(token_bytes=noise)),
        mock.patch.object(api_keys, "secrets", SimpleNamespace(token_urlsafe=lambda size: noise(size).hex()[-43:])),
        mock.patch("harvester.guards.secrets.installed_ring", return_value=ring),
    ):
        yield
