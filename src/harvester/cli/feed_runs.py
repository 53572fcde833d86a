"""`harvester feed run` and `runs`, and other names of the commands of `harvester runs`."""

from typing import Annotated

import typer

from harvester.cli import runs as all_runs
from harvester.cli.actor import operator
from harvester.cli.commands import command
from harvester.cli.exit_codes import Exit
from harvester.cli.feed import Name, app
from harvester.cli.output import OUT
from harvester.cli.session import session
from harvester.runs.states import RunOutcome, RunStatus


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
    wait: all_runs.Wait = False,
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
            message = f"The run was queued as job {made.job_id}. Follow it: harvester jobs show {made.job_id} --wait"
            OUT.show({"job_id": made.job_id}, lambda: message)
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
    status: all_runs.Status = None,
    outcome: all_runs.Outcome = None,
    trigger: all_runs.Trigger = None,
    limit: all_runs.Limit = 20,
) -> None:
    """List runs, newest first: of a feed, or of all."""
    all_runs.list_runs(kind="AFFILIATE_FEED", feed=name, status=status, outcome=outcome, trigger=trigger, limit=limit)


# The names that these commands had when only feeds had runs.
for _name, _function, _examples in (
    ("file", all_runs.file, ("harvester feed file 42", "harvester feed file 42 --to catalog.csv.gz --json")),
    ("inspect", all_runs.show, ("harvester feed inspect 42", "harvester feed inspect 42 --json")),
    ("approve", all_runs.approve, ("harvester feed approve 42", "harvester feed approve 42 --yes --wait")),
    ("reject", all_runs.reject, ('harvester feed reject 42 --reason "the partner sent half a file"',)),
    ("ignore", all_runs.ignore, ('harvester feed ignore 42 --reason "prices without VAT"',)),
    ("undo-ignore", all_runs.undo_ignore, ("harvester feed undo-ignore 42",)),
):
    command(app, _name, _examples, data=True)(_function)


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
