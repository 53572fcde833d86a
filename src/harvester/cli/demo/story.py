"""Runs the acts one after the other with real workers, kills one of them, and prints what happens. Needs Django."""

import shlex
import signal
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

from django.db import connection
from rich.console import RenderableType
from rich.text import Text

from harvester.catalog.search import search
from harvester.catalog.search_query import Query, Sort
from harvester.cli.actor import operator
from harvester.cli.demo.catalog import CURRENCY, FIRST, HARBOUR, LEAVER, SECOND, SHRUNK, Edition
from harvester.cli.demo.home import CONTACT, EGRESS, USERNAME, DemoHome
from harvester.cli.demo.partner import HOST, Partner
from harvester.cli.demo.shop import HARBOUR_STREET, KESTREL, Shop
from harvester.cli.job_views import details
from harvester.cli.offer_views import list_table
from harvester.cli.output import count_text, pairs, stacked, table
from harvester.cli.signals import StopRequest
from harvester.cli.supervisor import Child, Supervisor
from harvester.engine.models import Job
from harvester.engine.states import ENDED, OPEN, JobState
from harvester.feeds import verbs
from harvester.feeds.jobs import RUN
from harvester.feeds.models import Feed, FeedRun
from harvester.feeds.partner_connection import approved_keys
from harvester.kernel.errors import TerminalError
from harvester.ops import jobs
from harvester.runs.models import Run
from harvester.runs.states import RunOutcome

#: SKU -> price that consumers see.
Shown = Mapping[str, Decimal]

_SHOWN = """
SELECT coalesce(p.sku, p.item_id), v.amount FROM visible_offers v
JOIN source_products p ON p.source_id = v.source_id AND p.id = v.product_id
WHERE v.source_id = %s
"""
_HELD = """
SELECT count(*), count(*) FILTER (WHERE is_price), count(*) FILTER (WHERE is_missing)
FROM held_changes WHERE source_id = %s AND run_no = %s
"""


@dataclass(frozen=True, kw_only=True)
class Act:
    """One run of a feed.

    Attributes:
        title: what the partner sends.
        shop: the shop that sends it.
        edition: the catalog.
        wanted: the expected outcome.
        worker_dies: a worker is killed during the run.
    """

    title: str
    shop: Shop = KESTREL
    edition: Edition
    wanted: RunOutcome = RunOutcome.PROMOTED
    worker_dies: bool = False


ACTS = (
    Act(title="another shop with another network", shop=HARBOUR_STREET, edition=HARBOUR),
    Act(title="the whole catalog", edition=FIRST),
    Act(title="new prices, one product added, one removed", edition=SECOND, worker_dies=True),
    Act(title="one department only, by mistake", edition=SHRUNK, wanted=RunOutcome.HELD),
)


@dataclass(frozen=True, kw_only=True)
class Held:
    """The number of changes that wait for a decision."""

    changes: int
    prices: int
    missing: int


@dataclass(frozen=True, kw_only=True)
class Played:
    """A finished act.

    Attributes:
        act: the act.
        run: its run.
        figures: the counts of the run.
        held: the changes that wait for a decision.
        job: the job with its attempts.
        before: what consumers saw before the run.
        after: what they see now.
    """

    act: Act
    run: Run
    figures: FeedRun
    held: Held
    job: Mapping[str, Any]
    before: Shown
    after: Shown

    @property
    def reason(self) -> str:
        """Return why the run was held."""
        return " ".join(finding["reason"] for finding in self.run.verdict if finding["holds"])


def look_back(act: Act, feed: Feed, job_id: int, before: Shown) -> Played:
    """Collect the results of a job that has ended."""
    job = details(job_id)
    run = Run.objects.filter(job_id=job_id).first()
    if run is None:
        raise TerminalError(f"The demo failed: job {job_id} is {job['state']} and started no run.")
    with connection.cursor() as cursor:
        cursor.execute(_HELD, [feed.source_id, run.no])
        changes, prices, missing = cursor.fetchone()
    return Played(
        act=act,
        run=run,
        figures=FeedRun.objects.get(pk=run.pk),
        held=Held(changes=changes, prices=prices, missing=missing),
        job=job,
        before=before,
        after=shown(feed),
    )


def shown(feed: Feed) -> Shown:
    """Return what consumers see of the shop."""
    with connection.cursor() as cursor:
        cursor.execute(_SHOWN, [feed.source_id])
        return dict(cursor.fetchall())


def problems(played: Played) -> Iterator[str]:
    """Yield each difference between the expected and the real result."""
    act, run = played.act, played.run
    if run.outcome != act.wanted:
        why = run.error or played.reason
        yield f"it is {run.outcome or run.status} instead of {act.wanted}" + (f" ({why})" if why else "")
        return
    if played.figures.products_upserted != len(act.edition.products):
        yield f"it read {played.figures.products_upserted} products instead of {len(act.edition.products)}"
    if played.figures.rejects != act.edition.rejects:
        yield f"it rejected {played.figures.rejects} instead of {dict(act.edition.rejects)}"
    outcomes = [attempt["outcome"] for attempt in played.job["attempts"]]
    wanted = [JobState.RETRYABLE, JobState.SUCCEEDED] if act.worker_dies else [JobState.SUCCEEDED]
    if outcomes != wanted:
        yield f"its attempts ended {', '.join(outcomes)} instead of {', '.join(wanted)}"
    yield from _wrong_offers(played)
    if act.wanted == RunOutcome.HELD and played.held.missing != len(played.before.keys() - act.edition.amounts.keys()):
        yield f"{played.held.missing} products would disappear instead of all that are not in the file"


def _wrong_offers(played: Played) -> Iterator[str]:
    """A held run changes nothing. Any other shows the products of the file, and those shown before that it lacks."""
    asked, after = played.act.edition.amounts, played.after
    if played.act.wanted == RunOutcome.HELD:
        wanted: Shown = played.before
    else:
        wanted = {**{sku: played.before[sku] for sku in after.keys() - asked.keys() if sku in played.before}, **asked}
    if played.act.edition is SECOND:
        wanted = {LEAVER.sku: LEAVER.amount, **wanted}
    differ = sorted(sku for sku in wanted.keys() | after.keys() if wanted.get(sku) != after.get(sku))
    if differ:
        samples = ", ".join(
            f"{sku} at {after.get(sku, 'nothing')}, not {wanted.get(sku, 'nothing')}" for sku in differ[:3]
        )
        yield f"consumers see {len(differ)} products differently than they should ({samples})"


LOOK_SECONDS = 0.05
#: Timeout of each step; the longest, the rescue of a job, takes about five seconds on two busy cores.
PATIENCE_SECONDS = 90.0


class Story:
    """The runs of the demo.

    Attributes:
        feeds: the feeds by the names of their shops.
        partner: the server of the files.
        workers: the worker processes by name.
        report: is called with each event.
        advice: what to do if the demo fails.
    """

    def __init__(
        self,
        feeds: Mapping[str, Feed],
        partner: Partner,
        workers: Sequence[Child],
        *,
        supervisor: Supervisor,
        stop: StopRequest,
        report: Callable[[str], None],
        advice: str,
    ) -> None:
        self.feeds = feeds
        self.partner = partner
        self.workers = {child.name: child for child in workers}
        self.report = report
        self._supervisor = supervisor
        self._stop = stop
        self._advice = advice

    def play(self, after_each: Callable[[Played], None]) -> list[Played]:
        """Run all acts. Raise after the first one with an unexpected result."""
        open_jobs = Job.objects.filter(kind__startswith="feeds.", queue__in=("feeds", "decisions"), state__in=OPEN)
        self.wait(lambda: not open_jobs.exists(), "the jobs of an earlier demo end")
        played = []
        for act in ACTS:
            one = self._play(act)
            wrong = list(problems(one))
            if wrong:
                raise TerminalError(
                    f"The demo failed in run {one.run.no} ({act.title}): {'; '.join(wrong)}. {self._advice}"
                )
            after_each(one)
            played.append(one)
        return played

    def _play(self, act: Act) -> Played:
        feed = self.feeds[act.shop.name]
        before = shown(feed)
        self.partner.put(act.shop.path, act.edition.file())
        if act.worker_dies:
            self.partner.stall()
        try:
            # Forced, because an earlier demo may have ended with the same file.
            job = verbs.run_now(operator(), feed.id, force=act.edition in (FIRST, HARBOUR)).job_id
            if act.worker_dies:
                self._kill_worker_of(job)
        finally:
            self.partner.resume()
        self.wait(lambda: _state(job) in ENDED, f"the run ends ({act.title})")
        return look_back(act, feed, job, before)

    def _kill_worker_of(self, job_id: int) -> None:
        reads = self.partner.has_reader.is_set
        self.wait(lambda: reads() or _state(job_id) in ENDED, "a worker reads the partner's file")
        if not reads():
            return
        child = self.workers[str(Job.objects.values_list("worker", flat=True).get(id=job_id))]
        self.report(f"kill -9 {child.pid}: {child.name} is killed during the next download")
        child.send(signal.SIGKILL)

    def wait(self, happened: Callable[[], bool], what: str) -> None:
        """Look after the processes until something has happened."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        while not happened():
            self._supervisor.look_after()
            self._stop.wait(LOOK_SECONDS)
            if self._stop.asked:
                raise KeyboardInterrupt
            if time.monotonic() > deadline:
                raise TerminalError(f"The demo failed: waited {PATIENCE_SECONDS:.0f} s until {what}. {self._advice}")


def cancel_leftovers() -> None:
    """Cancel the runs of an interrupted demo, which would come between the runs of this one."""
    for job_id in Job.objects.filter(kind=RUN, state__in=OPEN).values_list("id", flat=True):
        jobs.cancel(operator(), job_id)


def _state(job_id: int) -> str:
    return str(Job.objects.values_list("state", flat=True).get(id=job_id))


_OUTCOMES = {RunOutcome.PROMOTED: "green", RunOutcome.HELD: "bold yellow"}


def beginning(home: DemoHome, partner: Partner, feeds: Mapping[str, Feed]) -> RenderableType:
    feed = feeds[KESTREL.name]
    fingerprint = approved_keys(feed)[0].fingerprint
    runs, held = FeedRun.objects.count(), feed.source.held_run_no
    data = f"from an earlier demo, with {runs} runs" if runs else "new"
    if runs and held:
        data += f"; held run {held} is replaced by the next successful run"
    rows = [
        ("database", f"embedded PostgreSQL in {home.path}"),
        ("data", data),
        ("log", home.log_file),
        *(("shop", f"{shop.retailer} (invented), feed {shop.name}") for shop in (KESTREL, HARBOUR_STREET)),
        ("partner", f"SFTP server on {HOST}:{partner.port}, serving {partner.directory}"),
        ("host key", f"{fingerprint}, approved"),
    ]
    return stacked(pairs(rows), Text("Starting portal, scheduler and two workers ..."))


def event_line(sentence: str) -> RenderableType:
    return Text.assemble(("  ok  ", "green"), sentence)


def came_out(played: Played) -> str:
    """Return the result of an act in one line."""
    run = f"run {played.run.no}, {played.act.shop.name}: {played.act.title}"
    if played.act.wanted == RunOutcome.HELD:
        return f"{run}; held, nothing changes for consumers"
    written = f"{played.figures.prices_written:,} prices written"
    if played.act.worker_dies:
        return f"{run}; rescued and finished by another worker, {written}"
    return f"{run}; {written}, consumers see {len(played.after):,} products"


def summary(story: Sequence[Played]) -> RenderableType:
    rows = [
        (
            played.run.no,
            played.act.shop.name,
            Text(str(played.run.outcome), style=_OUTCOMES[played.act.wanted]),
            count_text(played.figures.products_upserted),
            count_text(played.figures.products_new),
            count_text(played.figures.products_back),
            count_text(played.figures.products_missing),
            count_text(played.figures.prices_written or 0),
            count_text(played.held.changes or None),
            count_text(len(played.after)),
        )
        for played in story
    ]
    columns = ("run", "feed", "outcome", "products", "new", "back", "missing", "prices", "held", "shown")
    [crashed] = [played for played in story if played.act.worker_dies][:1]
    rescued, hours = crashed.run, crashed.figures.feed.source.expiry_hours
    return stacked(
        Text(""),
        table(columns, rows, title="Runs", right=("run", *columns[3:])),
        Text(f"{LEAVER.title!r} is not in the file of run {rescued.no}; it disappears {hours} h after last seen."),
    )


def waiting(played: Played) -> RenderableType:
    """Return what approving a held run would change, and what applies until then."""
    held = played.held
    return stacked(
        Text(f"Run {played.run.no} waits for a decision. {played.reason}", style="bold"),
        Text(
            f"Approving it changes {held.prices:,} prices and lets {held.missing:,} products expire. "
            f"Until then consumers see all {len(played.after):,} products at their previous prices."
        ),
    )


def ending(home: DemoHome, portal: str, held: int, *, workers_stay: bool) -> RenderableType:
    # As it was typed, because the bin directory of the environment may not be in the search path.
    program = sys.argv[0] if Path(sys.argv[0]).name == "harvester" else "harvester"
    # The password is printed only once; later only its file is named.
    login = f"{USERNAME}, with the password in {home.login_file}"
    if home.is_new:
        login = f"{USERNAME} / {home.password}   (saved in {home.login_file})"
    # Commands check addresses and settings themselves, so they need what the demo's processes have.
    settings = {"HARVESTER_HOME": str(home.path), **EGRESS, **CONTACT}
    rows = [
        ("portal", portal),
        ("login", login),
        *(
            ("" if index else "terminal", f"export {name}={shlex.quote(value)}")
            for index, (name, value) in enumerate(settings.items())
        ),
        ("approve", f"{program} runs approve {held} --wait"),
        ("reject", f'{program} runs reject {held} --wait --reason "one department only"'),
        ("list", f"{program} runs list --feed {KESTREL.name}"),
        ("", f"{program} alerts list"),
    ]
    if not workers_stay:
        rows.insert(2 + len(settings), ("start again", f"{program} up"))
    return pairs(rows)


#: A search for products that the held run lacks.
_TEXT, _SIZE = "boot", 5
COMMAND = f"harvester offers search {_TEXT} --source {KESTREL.name} --currency {CURRENCY} --sort price --size {_SIZE}"


def sample_search(feed: Feed) -> RenderableType:
    """Return the output of the command. Raise unless it fits the last promoted catalog."""
    query = Query(text=_TEXT, source_id=feed.source_id, currency=CURRENCY, sort=Sort.PRICE, page_size=_SIZE)
    found = search(query)
    boots = [(product.amount, product.number, product.sku) for product in SECOND.products if "Boot" in product.noun]
    wanted = [(sku, amount) for amount, _, sku in sorted(boots)][:_SIZE]
    got = [(offer.sku, offer.amount) for offer in found.offers]
    if got != wanted:
        raise TerminalError(f"The demo failed: {COMMAND} finds {got} instead of {wanted}.")
    return stacked(Text(f"$ {COMMAND}", style="bold"), list_table(found.offers))
