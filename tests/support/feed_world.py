"""A partner with an SFTP server, a shop, and the feed that joins them: what tests of whole runs play with."""

import gzip
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

from django.conf import settings
from django.db import connection, connections
from django.test import override_settings

from harvester.catalog.models import Retailer, Source
from harvester.catalog.offers import differences
from harvester.engine.enqueue import enqueue
from harvester.engine.models import Job
from harvester.feeds.jobs import RUN
from harvester.feeds.models import Feed, FeedRun
from harvester.feeds.runs import FEED_LOCK
from harvester.guards import secrets
from harvester.kernel.actor import Actor
from harvester.runs import decisions as run_decisions
from harvester.runs.models import Run
from tests.support.feeds import feed as written
from tests.support.feeds import row
from tests.support.jobs import change
from tests.support.sftp_server import HOST, PASSWORD, USERNAME, SftpServer, WellBehaved
from tests.support.tables import rows
from tests.support.together import together
from tests.support.workers import run_until_idle

LOOPBACK = ("127.0.0.0/8",)
PATH = "/Shop/catalog.txt"
#: States of a job that will go on.
OPEN = ("pending", "running", "retryable")
OLGA = Actor(kind="person", id="olga", name="Olga")


def allow_loopback(fixture) -> None:
    """Let the guards of this process connect to this machine; `fixture` is pytest-django's `settings`."""
    fixture.CONFIG = replace(settings.CONFIG, egress_allow=LOOPBACK)


class CallsBack(WellBehaved):
    """Lets something happen, once, while a file is read."""

    def read(self, file_obj, offset, size):
        call, self.server.meanwhile = getattr(self.server, "meanwhile", None), None
        if call is not None:
            # Not in the thread of the server: Django refuses one that has an event loop.
            self.server.happened = together(call)[0]
        return super().read(file_obj, offset, size)


@contextmanager
def loopback_allowed() -> Iterator[None]:
    """The same for longer than one test."""
    with override_settings(CONFIG=replace(settings.CONFIG, egress_allow=LOOPBACK)):
        yield


@dataclass
class World:
    """One feed and everything around it."""

    server: SftpServer
    name: str = "Shop"
    source: Source = field(init=False)
    feed: Feed = field(init=False)

    def __post_init__(self) -> None:
        domain = f"{self.name.lower()}.example"
        retailer = Retailer.objects.create(name=self.name, website=f"https://{domain}", domain=domain)
        self.source = Source.objects.create(
            retailer=retailer,
            name=f"{self.name} by Impact",
            kind="AFFILIATE_FEED",
            visibility="ELIGIBLE",
            expiry_hours=48,
            is_display_primary=True,
        )
        self.feed = make_feed(self.source, self.server)

    @property
    def file(self) -> Path:
        return self.server.root / PATH.lstrip("/")

    def put(self, *numbers, compressed=False, **changed) -> None:
        """The partner writes a catalog with these rows: numbers, or whole rows."""
        lines = [row(item, **changed) if isinstance(item, int) else item for item in numbers]
        self.put_bytes(written(*lines).encode(), compressed=compressed)

    def put_bytes(self, data: bytes, *, compressed=False) -> None:
        self.file.parent.mkdir(exist_ok=True)
        before = self.file.stat().st_mtime if self.file.exists() else 0
        self.file.write_bytes(gzip.compress(data) if compressed else data)
        # Servers report whole seconds: two files of one test must not look like one. Files are old enough to be taken
        # for settled.
        later = max(self.file.stat().st_mtime - 86400, before) + 2
        os.utime(self.file, (later, later))

    def ask(self, trigger="SCHEDULED") -> int:
        """Put in the job of a run."""
        return self.job(RUN, {"feed_id": str(self.feed.id), "trigger": trigger})

    def job(self, kind: str, args: dict) -> int:
        return enqueue(kind, args).job_id

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Somebody else has the feed's lock: a decision in progress, or, with `running`, a run."""
        other = connections["default"].copy()
        with other.cursor() as cursor:
            cursor.execute("SELECT pg_advisory_lock(%s, %s)", [FEED_LOCK, self.feed.lock_no])
        try:
            yield
        finally:
            other.close()

    def running(self) -> Run:
        """A run in progress, or between two attempts, as another job."""
        job = enqueue(RUN, {"feed_id": str(self.feed.id), "trigger": "SCHEDULED"}, delay=3600).job_id
        run = Run.objects.create(
            kind="AFFILIATE_FEED",
            subject_id=self.feed.pk,
            source_id=self.source.pk,
            trigger="SCHEDULED",
            status="RUNNING",
            job_id=job,
        )
        FeedRun.objects.create(run=run, feed=self.feed)
        return run

    def run(self, trigger="SCHEDULED") -> Run | None:
        """One run to its end, retries included; the run of that job, if it made one."""
        job = self.ask(trigger)
        self.work(job)
        return Run.objects.filter(job_id=job).first()

    def meanwhile(self, call: Callable[[], object]) -> None:
        """Have this happen while the next file is read; `happened` is what came of it."""
        self.server.meanwhile = call

    @property
    def happened(self) -> object:
        return self.server.happened

    def attempt(self, job: int) -> Job:
        """One attempt at a job, and no retry."""
        if Job.objects.get(pk=job).state == "retryable":
            change(job, "run_at = now()")
        run_until_idle(threads=1)
        return Job.objects.get(pk=job)

    def work(self, job: int, threads: int = 1) -> None:
        for _ in range(5):
            run_until_idle(threads=threads)
            if Job.objects.get(pk=job).state != "retryable":
                return
            change(job, "run_at = now()")

    def hurry(self) -> None:
        """Have done what was put off: a follow-up that begins before the lock of the run is gone comes back later."""
        for job in Job.objects.filter(kind=RUN, state="pending"):
            change(job.pk, "run_at = now()")
        run_until_idle()

    def approve(self, run: Run, **more) -> Job:
        """Olga approves a held run, and the job is done."""
        return self._decide(run_decisions.request_approval(OLGA, run.id, **more).job_id)

    def reject(self, run: Run, reason="not whole", **more) -> Job:
        return self._decide(run_decisions.request_rejection(OLGA, run.id, reason, **more).job_id)

    def _decide(self, job: int) -> Job:
        self.work(job)
        return Job.objects.get(pk=job)

    def figures(self, run: Run) -> FeedRun:
        return FeedRun.objects.get(pk=run.pk)

    def shown(self) -> dict[str, tuple]:
        """What consumers see: SKU -> title, amount, in stock."""
        found = rows(
            "SELECT p.identity_value, p.title, v.amount, v.in_stock FROM visible_offers v "
            "JOIN source_products p ON p.source_id = v.source_id AND p.id = v.product_id"
        )
        return {value: (title, float(amount), stock) for value, title, amount, stock in found}

    def names(self) -> set[str]:
        """The SKUs that consumers see."""
        return set(self.shown())

    def hold(self) -> Run:
        """Forty products are shown, S-100 to S-139, and a file with three of them waits for a decision."""
        self.put(*range(100, 140))
        assert self.run().outcome == "PROMOTED"
        return self.shrink()

    def shrink(self, *numbers: int) -> Run:
        """A file with hardly anything left in it; the run is held."""
        self.put(*(numbers or (100, 101, 102)))
        run = self.run()
        assert run.outcome == "HELD"
        return run

    def change(self, **fields) -> None:
        """Change the feed's row, without its verbs."""
        Feed.objects.filter(pk=self.feed.pk).update(**fields)
        self.feed.refresh_from_db()

    def look(self) -> Source:
        """The source as it is now."""
        self.source.refresh_from_db()
        return self.source

    def check(self) -> None:
        """What holds after every scenario."""
        assert differences() == [], "offers equal the slow truth"
        orphans = Run.objects.filter(status="RUNNING").exclude(
            job_id__in=Job.objects.filter(state__in=OPEN).values("id")
        )
        assert not orphans.exists(), "no run is RUNNING without an open job"
        held = Run.objects.filter(source_id=self.source.pk, outcome="HELD").values_list("no", flat=True)
        assert list(held) == [number for number in [self.look().held_run_no] if number], "the held run is the source's"
        kept = {number for (number,) in rows("SELECT DISTINCT run_no FROM held_changes")}
        assert kept <= set(held), "a difference is kept for the held run only"

    def pass_time(self, hours: float) -> None:
        """As if everything had happened that much earlier."""
        turn_back(hours)
        self.source.refresh_from_db()
        self.feed.refresh_from_db()


def make_feed(source: Source, server: SftpServer, **fields) -> Feed:
    made = Feed.objects.create(
        **{
            "source": source,
            "network": "impact",
            "status": "ENABLED",
            "host": HOST,
            "port": server.port,
            "path": PATH,
            "username": USERNAME,
            "host_keys": str(server.host_key),
            "created_by": "test",
            "secret_version": 1,
            "secret_fields": ["password"],
            **fields,
        }
    )
    secrets.put("feed", made.id, {"password": PASSWORD})
    return made


#: Every time that visibility, comparison or change detection depends on.
_MOMENTS = (
    ("sources", ("held_since", "last_promoted_at", "last_observed_at")),
    ("offers", ("observed_at", "last_priced_at", "seen_until", "ended_at")),
    ("page_products", ("seen_at", "leads_until", "ended_at")),
    ("prices", ("observed_at", "created_at")),
    ("hidden_offers", ("seen_until", "last_promoted_at")),
    ("replaced_presence", ("seen_until", "last_promoted_at")),
    ("replaced_promotions", ("last_promoted_at",)),
    ("corrected_prices", ("after_at", "anchored_at")),
    ("runs", ("started_at", "finished_at", "observed_at", "decided_at")),
    ("feeds", ("manual_run_requested_at",)),
)


def turn_back(hours: float) -> None:
    """Move what happened into the past; only the owner of the tables can, with their triggers silent."""
    with connections["owner"].cursor() as cursor:
        cursor.execute("SET session_replication_role = replica")
        for table, names in _MOMENTS:
            moved = ", ".join(f"{name} = {name} - %(hours)s * interval '1 hour'" for name in names)
            cursor.execute(f"UPDATE {table} SET {moved}", {"hours": hours})
        cursor.execute("SET session_replication_role = origin")


def count(table: str) -> int:
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT count(*) FROM {table}")
        return cursor.fetchone()[0]
