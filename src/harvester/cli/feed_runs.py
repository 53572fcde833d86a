"""`harvester feed run`, `runs` and the decisions about a run that is held. Runs go by their numbers."""

import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, BinaryIO

import typer

from harvester.cli.actor import operator
from harvester.cli.commands import command
from harvester.cli.exit_codes import Exit
from harvester.cli.feed import Name, app
from harvester.cli.output import OUT
from harvester.cli.session import session
from harvester.kernel.errors import InvalidInput
from harvester.runs.states import RunOutcome, RunStatus, RunTrigger

RunNo = Annotated[int, typer.Argument(metavar="RUN", min=1, help="The number of the run; `feed runs` lists them.")]
Wait = Annotated[bool, typer.Option("--wait", help="Wait until it is done, and show what came of it.")]
Reason = Annotated[str, typer.Option(help="Why; others will ask.")]
Yes = Annotated[bool, typer.Option("--yes", help="Do not ask again.")]


@command(
    app,
    "run",
    (
        'harvester feed run "Acme by Impact"',
        'harvester feed run "Acme by Impact" --wait',
        'harvester feed run "Acme by Impact" --force --wait --json',
    ),
    data=True,
)
def run(
    name: Name,
    *,
    wait: Wait = False,
    force: Annotated[bool, typer.Option("--force", help="Read the file even if it is the same as last time.")] = False,
) -> None:
    """Run an enabled feed now; its schedule stays as it is.

    With --wait the exit code is 1 if the run fails, and 5 if it is held and waits for a decision.
    """
    with session():
        from harvester.cli.job_wait import wait_for_end
        from harvester.feeds import verbs

        made = verbs.run_now(operator(), verbs.feed_named(name).id, force=force)
        if not wait:
            told = f"The run was queued as job {made.job_id}. See how it goes: harvester jobs show {made.job_id} --wait"
            OUT.show({"job_id": made.job_id}, lambda: told)
            return
        wait_for_end(made.job_id)
        _show_run_of_job(made.job_id, name)


@command(
    app,
    "runs",
    (
        'harvester feed runs "Acme by Impact"',
        "harvester feed runs --outcome HELD              what waits for a decision, of all feeds",
        'harvester feed runs "Acme by Impact" --status FAILED --json',
    ),
    data=True,
)
def runs(
    name: Annotated[str, typer.Argument(metavar="NAME", help="The name of the feed's source; all feeds without.")] = "",
    *,
    status: Annotated[RunStatus | None, typer.Option(case_sensitive=False, help="Only in this state.")] = None,
    outcome: Annotated[RunOutcome | None, typer.Option(case_sensitive=False, help="Only with this outcome.")] = None,
    trigger: Annotated[
        RunTrigger | None, typer.Option(case_sensitive=False, help="Only begun for this reason.")
    ] = None,
    limit: Annotated[int, typer.Option(min=1, max=10_000, help="At most this many.")] = 20,
) -> None:
    """List runs, newest first: of a feed, or of all."""
    wanted = {"status": status, "outcome": outcome, "trigger": trigger}
    with session():
        from harvester.cli import run_views
        from harvester.feeds import verbs

        found = run_views.newest(verbs.feed_named(name) if name else None, limit, **wanted)
        OUT.show(
            {"runs": found}, lambda: run_views.list_table(found, of_one=bool(name), empty="There are no such runs.")
        )


@command(app, "file", ("harvester feed file 42", "harvester feed file 42 --to catalog.csv.gz --json"), data=True)
def file(run_no: RunNo, *, to: Annotated[str, typer.Option(help="Where to put it; here by default.")] = "") -> None:
    """Save the file of a run, as the partner wrote it, even if the run failed. An existing file is not overwritten."""
    with session():
        from harvester.cli import run_views
        from harvester.feeds import files

        kept = files.hand_out(operator(), run_views.run_numbered(run_no).pk)
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


@command(app, "inspect", ("harvester feed inspect 42", "harvester feed inspect 42 --json"), data=True)
def inspect(run_no: RunNo) -> None:
    """Show one run: its figures, what the gates say, and the rows that were rejected or odd, with their lines."""
    with session():
        from harvester.cli import run_views

        found = run_views.inspected(run_no)
        OUT.show(found, lambda: run_views.inspected_view(found))


@command(app, "approve", ("harvester feed approve 42", "harvester feed approve 42 --yes --wait"), data=True)
def approve(run_no: RunNo, *, yes: Yes = False, wait: Wait = False) -> None:
    """Promote a held run. Its figures are shown first; if they change meanwhile, nothing is done."""
    with session():
        from harvester.runs import decisions

        _decide(run_no, decisions.request_approval, yes=yes, wait=wait)


@command(app, "reject", ('harvester feed reject 42 --reason "the partner sent half a file"',), data=True)
def reject(run_no: RunNo, *, reason: Reason, yes: Yes = False, wait: Wait = False) -> None:
    """Drop a held run; what consumers see stays as it is."""
    with session():
        from harvester.runs import decisions

        def request(actor: Any, run_id: Any, expected: Any) -> Any:
            return decisions.request_rejection(actor, run_id, reason, expected)

        _decide(run_no, request, yes=yes, wait=wait)


@command(app, "ignore", ('harvester feed ignore 42 --reason "prices without VAT"',), data=True)
def ignore(run_no: RunNo, *, reason: Reason) -> None:
    """Hide the prices of a promoted run from every reader.

    If it is the newest promoted run, titles, links and presence return to their state before it as well, and its file
    is refused until the partner sends a different one or somebody runs the feed with --force. A later run that brings
    back more than half of the prices that the ignored run had changed is held.
    """
    with session():
        from harvester.cli import run_views
        from harvester.feeds import decisions

        count = decisions.ignore(operator(), run_views.run_numbered(run_no).pk, reason)
        OUT.show(
            {"run_no": run_no, "products": count},
            lambda: f"The prices of run {run_no} are hidden; that concerns {count:,} products.",
        )


@command(app, "undo-ignore", ("harvester feed undo-ignore 42",), data=True)
def undo_ignore(run_no: RunNo) -> None:
    """Restore the prices of an ignored run and accept its file again."""
    with session():
        from harvester.cli import run_views
        from harvester.feeds import decisions

        count = decisions.undo_ignore(operator(), run_views.run_numbered(run_no).pk)
        OUT.show(
            {"run_no": run_no, "products": count},
            lambda: f"The prices of run {run_no} count again; that concerns {count:,} products.",
        )


def _decide(run_no: int, request: Callable[[Any, Any, Any], Any], *, yes: bool, wait: bool) -> None:
    from harvester.cli import run_views
    from harvester.cli.job_wait import wait_for_end
    from harvester.engine.states import JobState
    from harvester.feeds.runs import FEED_RUNS

    run = run_views.run_numbered(run_no)
    expected = FEED_RUNS.figures(run)
    if not yes:
        _ask(run_views.summary(run_no))
    made = request(operator(), run.pk, expected)
    if not wait:
        told = (
            f"The decision was queued as job {made.job_id}. See how it goes: harvester jobs show {made.job_id} --wait"
        )
        OUT.show({"job_id": made.job_id, "run_no": run_no}, lambda: told)
        return
    state = wait_for_end(made.job_id)
    found = run_views.summary(run_no)
    OUT.show(found, lambda: run_views.summary_view(found))
    if state != JobState.SUCCEEDED:
        raise typer.Exit(Exit.FAILED)


def _ask(found: dict[str, Any]) -> None:
    from harvester.cli import run_views

    if not sys.stdin.isatty() or OUT.as_json:
        raise InvalidInput("There is no terminal to show the figures on and to ask; look at them, then say --yes.")
    OUT.say(run_views.summary_view(found))
    if not typer.confirm("Continue?", err=True):
        OUT.hint("Nothing was decided.")
        raise typer.Exit(Exit.FAILED)


def _show_run_of_job(job_id: int, name: str) -> None:
    from harvester.cli import run_views

    run = run_views.run_of_job(job_id)
    if run is None:
        ending = run_views.ending_of_job(job_id)
        OUT.show(ending, lambda: run_views.ending_sentence(ending, name))
        if ending["state"] != "succeeded":
            raise typer.Exit(Exit.FAILED)
        return
    found = run_views.summary(run.no)
    OUT.show(found, lambda: run_views.summary_view(found))
    if found["status"] != RunStatus.SUCCEEDED:
        raise typer.Exit(Exit.FAILED)
    if found["outcome"] == RunOutcome.HELD:
        raise typer.Exit(Exit.HELD)
