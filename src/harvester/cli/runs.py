"""`harvester runs ...`: runs of all kinds, and the decisions about those that are held. Runs go by their numbers."""

import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, BinaryIO

import typer

from harvester.cli.actor import operator
from harvester.cli.commands import command, group
from harvester.cli.exit_codes import Exit
from harvester.cli.output import OUT
from harvester.cli.session import session
from harvester.kernel.errors import InvalidInput
from harvester.runs.states import RunOutcome, RunStatus, RunTrigger

app = group(
    "runs",
    "List and show runs, and decide about those that are held.",
    (
        "harvester runs list --outcome HELD               what waits for a decision",
        "harvester runs show 42                           figures, gates, rejected rows",
        "harvester runs approve 42 --wait",
        'harvester runs reject 42 --reason "half a file"',
    ),
)

RunNo = Annotated[int, typer.Argument(metavar="RUN", min=1, help="The number of the run; `runs list` shows it.")]
Wait = Annotated[bool, typer.Option("--wait", help="Wait until it is done, and show what came of it.")]
Reason = Annotated[str, typer.Option(help="Why; others will ask.")]
Yes = Annotated[bool, typer.Option("--yes", help="Do not ask again.")]
Status = Annotated[RunStatus | None, typer.Option(case_sensitive=False, help="Only in this state.")]
Outcome = Annotated[RunOutcome | None, typer.Option(case_sensitive=False, help="Only with this outcome.")]
Trigger = Annotated[RunTrigger | None, typer.Option(case_sensitive=False, help="Only begun for this reason.")]
Limit = Annotated[int, typer.Option(min=1, max=10_000, help="At most this many.")]


@command(
    app,
    "list",
    (
        "harvester runs list --outcome HELD              what waits for a decision",
        "harvester runs list --kind AFFILIATE_FEED --limit 100",
        'harvester runs list --feed "Acme by Impact" --status FAILED --json',
    ),
    data=True,
)
def list_runs(
    *,
    kind: Annotated[str, typer.Option(help="Only of this kind, such as AFFILIATE_FEED.")] = "",
    feed: Annotated[str, typer.Option(metavar="NAME", help="Only of this feed; the name of its source.")] = "",
    status: Status = None,
    outcome: Outcome = None,
    trigger: Trigger = None,
    limit: Limit = 20,
) -> None:
    """List runs of all kinds, newest first."""
    with session():
        from harvester.cli import run_views
        from harvester.feeds import verbs
        from harvester.runs import queries

        query = queries.RunQuery(
            kind=kind or None,
            subject_id=verbs.feed_named(feed).pk if feed else None,
            status=status,
            outcome=outcome,
            trigger=trigger,
            most=limit,
        )
        found = run_views.as_dicts(queries.runs(query))
        OUT.show(
            {"runs": found}, lambda: run_views.list_table(found, of_one=bool(feed), empty="There are no such runs.")
        )


@command(app, "show", ("harvester runs show 42", "harvester runs show 42 --json"), data=True)
def show(run_no: RunNo) -> None:
    """Show one run: its figures, what the gates say, and the rows that were rejected or odd, with their lines."""
    with session():
        from harvester.cli import run_views

        found = run_views.inspected(run_no)
        OUT.show(found, lambda: run_views.inspected_view(found))


@command(app, "approve", ("harvester runs approve 42", "harvester runs approve 42 --yes --wait"), data=True)
def approve(run_no: RunNo, *, yes: Yes = False, wait: Wait = False) -> None:
    """Approve a held run. Its figures are shown first; if they change meanwhile, nothing is done."""
    with session():
        from harvester.runs import decisions

        _decide(run_no, decisions.request_approval, yes=yes, wait=wait)


@command(app, "reject", ('harvester runs reject 42 --reason "the partner sent half a file"',), data=True)
def reject(run_no: RunNo, *, reason: Reason, yes: Yes = False, wait: Wait = False) -> None:
    """Drop a held run; what consumers see stays as it is."""
    with session():
        from harvester.runs import decisions

        def request(actor: Any, run_id: Any, expected: Any) -> Any:
            return decisions.request_rejection(actor, run_id, reason, expected)

        _decide(run_no, request, yes=yes, wait=wait)


def _decisions_of(run: Any) -> Any:
    """Return the verbs that decide about runs of this kind."""
    from harvester.feeds import decisions
    from harvester.scraping.states import RUN_KIND
    from harvester.scraping.verbs import runs

    return runs if run.kind == RUN_KIND else decisions


@command(app, "ignore", ('harvester runs ignore 42 --reason "prices without VAT"',), data=True)
def ignore(run_no: RunNo, *, reason: Reason) -> None:
    """Hide the prices of a promoted run from every reader.

    Products show the prices from before; pages that it read are fetched in full again. If it is the newest promoted
    run of a feed, titles, links and presence return to their state before it as well, and its file
    is refused until the partner sends a different one or somebody runs the feed with --force. A later run that brings
    back more than half of the prices that the ignored run had changed is held.
    """
    with session():
        from harvester.runs import queries

        run = queries.run(run_no)
        count = _decisions_of(run).ignore(operator(), run.pk, reason)
        OUT.show(
            {"run_no": run_no, "products": count},
            lambda: f"The prices of run {run_no} are hidden; that concerns {count:,} products.",
        )


@command(app, "undo-ignore", ("harvester runs undo-ignore 42",), data=True)
def undo_ignore(run_no: RunNo) -> None:
    """Restore the prices of an ignored run and accept its file again."""
    with session():
        from harvester.runs import queries

        run = queries.run(run_no)
        count = _decisions_of(run).undo_ignore(operator(), run.pk)
        OUT.show(
            {"run_no": run_no, "products": count},
            lambda: f"The prices of run {run_no} count again; that concerns {count:,} products.",
        )


@command(app, "file", ("harvester runs file 42", "harvester runs file 42 --to catalog.csv.gz --json"), data=True)
def file(run_no: RunNo, *, to: Annotated[str, typer.Option(help="Where to put it; here by default.")] = "") -> None:
    """Save the file of a run, as the partner wrote it, even if the run failed. An existing file is not overwritten."""
    with session():
        from harvester.feeds import files
        from harvester.runs import queries

        kept = files.hand_out(operator(), queries.run(run_no).pk)
        place = Path(to or kept.name)
        with kept.content:
            _save(kept.content, place)
        OUT.show({"run_no": run_no, "path": str(place)}, lambda: f"The file of run {run_no} is in {place}.")


def _save(content: BinaryIO, place: Path) -> None:
    try:
        target = place.open("xb")
    except OSError as problem:
        raise InvalidInput(f"--to: {place} cannot be written ({problem.strerror}); choose another place.") from None
    with target:
        try:
            shutil.copyfileobj(content, target)
        except BaseException:
            place.unlink()
            raise


def _decide(run_no: int, request: Callable[[Any, Any, Any], Any], *, yes: bool, wait: bool) -> None:
    from harvester.cli import run_views
    from harvester.cli.job_wait import wait_for_end
    from harvester.engine.states import JobState
    from harvester.runs import queries
    from harvester.runs.kinds import holding_kind

    run = queries.run(run_no)
    kind = holding_kind(run.kind)
    expected = kind.figures(run) if kind else None
    if not yes:
        if not sys.stdin.isatty() or OUT.as_json:
            raise InvalidInput("There is no terminal to show the figures on and to ask; look at them, then say --yes.")
        OUT.say(run_views.summary_view(run_views.summary(run_no)))
        if not typer.confirm("Continue?", err=True):
            OUT.hint("Nothing was decided.")
            raise typer.Exit(Exit.FAILED)
    made = request(operator(), run.pk, expected)
    if not wait:
        message = f"The decision was queued as job {made.job_id}. Follow it: harvester jobs show {made.job_id} --wait"
        OUT.show({"job_id": made.job_id, "run_no": run_no}, lambda: message)
        return
    state = wait_for_end(made.job_id)
    found = run_views.summary(run_no)
    OUT.show(found, lambda: run_views.summary_view(found))
    if state != JobState.SUCCEEDED:
        raise typer.Exit(Exit.FAILED)
