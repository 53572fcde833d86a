"""`harvester feed ...`: set up feeds, test and run them, switch them on and off. A feed has the name of its source."""

import getpass
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from harvester.cli import runs as all_runs
from harvester.cli.actor import operator
from harvester.cli.commands import command, group
from harvester.cli.exit_codes import Exit
from harvester.cli.output import OUT, clean, count_text, span, table
from harvester.cli.session import session
from harvester.kernel.errors import InvalidInput
from harvester.runs.states import RunOutcome, RunStatus

app = group(
    "feed",
    "Set up, test and run affiliate feeds, and decide about held runs.",
    (
        'harvester feed add "Acme by Impact" network=impact host=sftp.example.com path=/Acme/catalog.csv.gz',
        'harvester feed test "Acme by Impact"',
        'harvester feed run "Acme by Impact" --wait',
    ),
)

Name = Annotated[str, typer.Argument(metavar="NAME", help="The name of the feed's source.")]
Settings = Annotated[list[str], typer.Argument(metavar="SETTING=VALUE...", help="See above.")]
AcceptInsecure = Annotated[
    bool,
    typer.Option(
        "--accept-insecure", help="Allow plain FTP, which sends the password unencrypted: I accept this risk."
    ),
]


@command(
    app,
    "add",
    (
        'harvester feed add "Acme by Impact" network=impact host=sftp.example.com path=/catalog.csv.gz username=acme',
        'harvester feed add "Shop" network=google_merchant schedule_hours=6 expiry_hours=48',
    ),
    data=True,
)
def add(name: Name, settings: Settings, *, accept_insecure: AcceptInsecure = False) -> None:
    """Create the feed of a source as a draft, which does not run yet.

    `harvester feed set --help` lists the settings; network is required. Then set the credentials and approve the host
    key.
    """
    given = read_pairs(settings)
    with session():
        from harvester.cli import feed_views
        from harvester.feeds import verbs

        feed = verbs.create(operator(), feed_views.source_named(name).id, given, accept_insecure=accept_insecure)
        _show(feed, f"{feed} was created as a draft. Next: {feed_views.next_steps(feed)}.")


@command(app, "list", ("harvester feed list", "harvester feed list --json"), data=True)
def list_feeds() -> None:
    """List all feeds with status, schedule and last run."""
    with session():
        from harvester.cli import feed_views

        feeds = feed_views.all_feeds()
        OUT.show({"feeds": feeds}, lambda: feed_views.list_table(feeds))


@command(
    app, "show", ('harvester feed show "Acme by Impact"', 'harvester feed show "Acme by Impact" --json'), data=True
)
def show(name: Name) -> None:
    """Show a feed: settings, missing settings, host keys and last runs."""
    with session():
        from harvester.cli import feed_views
        from harvester.feeds import verbs

        found = feed_views.details(verbs.feed_named(name))
        OUT.show(found, lambda: feed_views.detail_view(found))


@command(
    app,
    "set",
    (
        'harvester feed set "Acme by Impact" schedule_hours=6 expiry_hours=72',
        'harvester feed set "Acme by Impact" thresholds.expiry_share=0.4 default_currency=USD',
        'harvester feed set "Acme by Impact" port= thresholds.expiry_share=',
    ),
    data=True,
)
def change(name: Name, settings: Settings, *, accept_insecure: AcceptInsecure = False) -> None:
    """Change settings of a feed. An empty value resets a setting to its default, if it has one.

    Settings: network, schedule_hours (1, 2, 4, 6, 12, 24, or manual), expiry_hours (1 to 168), transport, host, port,
    path, username, compression, encoding, default_currency, decimal_style, unknown_stock (IN_STOCK, OUT_OF_STOCK,
    REJECT), kept_parameters (names separated by commas), use_manifest, max_file_bytes, max_rows, max_products,
    accepts_url_identity, unchanged_means_seen; and thresholds.NAME for expiry_share, expiry_least, expiry_most,
    url_hash_share, url_hash_most, shock_move, shock_share, shock_least, reject_share, reject_least.
    """
    given = read_pairs(settings)
    with session():
        from harvester.feeds import verbs

        feed = verbs.update(operator(), verbs.feed_named(name).id, given, accept_insecure=accept_insecure)
        _show(feed, f"{feed} was changed.")


@command(
    app,
    "credentials",
    (
        'harvester feed credentials "Acme by Impact" --username acme',
        'pass show acme | harvester feed credentials "Acme by Impact" --password-stdin',
        'harvester feed credentials "Acme by Impact" --private-key-file acme.key --ask-passphrase',
    ),
    data=True,
)
def credentials(
    name: Name,
    *,
    username: Annotated[str, typer.Option(help="The account on the partner's server.")] = "",
    password_stdin: Annotated[
        bool, typer.Option("--password-stdin", help="Read the password from standard input.")
    ] = False,
    private_key_file: Annotated[Path | None, typer.Option(help="Read the private key from this file.")] = None,
    ask_passphrase: Annotated[
        bool, typer.Option("--ask-passphrase", help="Ask for the passphrase of the private key.")
    ] = False,
    replace: Annotated[bool, typer.Option("--replace", help="Delete the secrets that are not given now.")] = False,
) -> None:
    """Change how a feed logs in. Without options the password is asked for; an empty input keeps the old one."""
    with session():
        from harvester.feeds import verbs

        feed = verbs.feed_named(name)
        password = private_key = ""
        if password_stdin:
            password = sys.stdin.readline().rstrip("\r\n")
            if not password:
                raise InvalidInput("--password-stdin was given, but standard input is empty. Nothing was changed.")
        elif not (username or private_key_file):
            password = _ask("Password (empty keeps it): ")
        if private_key_file:
            try:
                private_key = private_key_file.read_text(encoding="ascii")
            except (OSError, UnicodeDecodeError):
                raise InvalidInput(
                    f"--private-key-file {private_key_file} cannot be read as a private key; it must be a text file."
                ) from None
        feed = verbs.change_credentials(
            operator(),
            feed.id,
            username=username,
            password=password,
            private_key=private_key,
            passphrase=_ask("Passphrase of the private key: ") if ask_passphrase else "",
            replace=replace,
        )
        secrets = " and ".join(field.replace("_", " ") for field in feed.secret_fields) or "no secrets"
        _show(feed, f"{feed} logs in as {feed.username or '(no user name)'} with {secrets}.")


@command(
    app,
    "host-key",
    (
        'harvester feed host-key "Acme by Impact"',
        'harvester feed host-key "Acme by Impact" SHA256:47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU',
        'harvester feed host-key "Acme by Impact" "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAA..." --add',
    ),
    data=True,
)
def host_key(
    name: Name,
    key: Annotated[
        str,
        typer.Argument(metavar="KEY", help="The key to approve: the fingerprint from a feed test, or the whole key."),
    ] = "",
    *,
    keep_others: Annotated[bool, typer.Option("--add", help="Keep the keys that are approved already.")] = False,
) -> None:
    """Show the host keys of a feed's server, or approve one. First compare it with the partner's published key."""
    with session():
        from harvester.cli import feed_views
        from harvester.feeds import verbs

        feed = verbs.feed_named(name)
        if key:
            feed = verbs.approve_host_key(operator(), feed.id, key, keep_others=keep_others)
        found = feed_views.host_keys(feed)
        OUT.show(found, lambda: feed_views.host_keys_of(feed, found))


@command(
    app, "test", ('harvester feed test "Acme by Impact"', 'harvester feed test "Acme by Impact" --json'), data=True
)
def try_out(
    name: Name,
    *,
    wait: Annotated[bool, typer.Option(help="Wait for the result.")] = True,
) -> None:
    """Test a feed with its first rows, without a run: host key, columns, ten rows, and rejected rows."""
    with session():
        from harvester.cli import feed_views
        from harvester.cli.job_wait import wait_for_end
        from harvester.feeds import verbs

        made = verbs.test_run(operator(), verbs.feed_named(name).id)
        if not wait:
            OUT.show(
                {"job_id": made.job_id},
                lambda: f"The test was queued as job {made.job_id}. For its result: harvester jobs show {made.job_id}",
            )
            return
        wait_for_end(made.job_id)
        found = feed_views.test_result(made.job_id)
        OUT.show(found, lambda: feed_views.test_view(found, name))
        if not found["success"]:
            raise typer.Exit(Exit.FAILED)


@command(app, "enable", ('harvester feed enable "Acme by Impact"',), data=True)
def enable(name: Name) -> None:
    """Enable a draft whose settings are complete."""
    _switch("enable", name, "is enabled")


@command(app, "pause", ('harvester feed pause "Acme by Impact"',), data=True)
def pause(name: Name) -> None:
    """Pause a feed until it is resumed. A run in progress continues."""
    _switch("pause", name, "is paused")


@command(app, "resume", ('harvester feed resume "Acme by Impact"',), data=True)
def resume(name: Name) -> None:
    """Resume a paused feed."""
    _switch("resume", name, "is enabled again")


@command(app, "re-enable", ('harvester feed re-enable "Acme by Impact" --acknowledge',), data=True)
def re_enable(
    name: Name,
    *,
    acknowledge: Annotated[
        bool, typer.Option("--acknowledge", help="Confirm that the cause of its failed runs was checked.")
    ] = False,
) -> None:
    """Enable a feed that was disabled by repeated failures."""
    _switch("re_enable", name, "is enabled again", acknowledged=acknowledge)


@command(app, "delete", ('harvester feed delete "Acme by Impact"',), data=True)
def delete(name: Name) -> None:
    """Delete a draft without runs, and its credentials. The source stays."""
    with session():
        from harvester.feeds import verbs

        feed = verbs.feed_named(name)
        verbs.delete_draft(operator(), feed.id)
        OUT.show({"id": feed.id, "name": str(feed), "deleted": True}, lambda: f"{feed} was deleted.")


@command(app, "retire", ('harvester feed retire "Acme by Impact" --yes',), data=True)
def retire(
    name: Name, *, yes: Annotated[bool, typer.Option("--yes", help="Confirm; it cannot be undone.")] = False
) -> None:
    """Retire a paused or disabled feed permanently. Its credentials are deleted; its runs and prices stay."""
    if not yes:
        raise InvalidInput("A retired feed cannot be used again. Nothing was changed; to retire it, add --yes.")
    with session():
        from harvester.feeds import verbs

        feed = verbs.retire(operator(), verbs.feed_named(name).id)
        OUT.show({"id": feed.id, "name": str(feed), "retired_at": feed.retired_at}, lambda: f"{feed} was retired.")


_COUNTS = ("runs", "failed", "held", "skipped", "rows", "prices", "rejects")


@command(
    app,
    "metrics",
    ('harvester feed metrics "Acme by Impact"', 'harvester feed metrics "Acme by Impact" --days 7 --json'),
    data=True,
)
def metrics(
    name: Name,
    *,
    days: Annotated[int, typer.Option(min=1, max=365, help="Days back; limited by the retention of runs.")] = 30,
) -> None:
    """Show the figures of a feed by day and in total: runs, prices, rejects and duration of a run."""
    with session():
        from harvester.feeds import figures, verbs

        feed = verbs.feed_named(name)
        total, by_day = figures.totals_since(feed, days=days), figures.days_since(feed, days=days)
        daily = [{"day": day.isoformat(), **vars(sums)} for day, sums in by_day.items()]
        columns = ("day (UTC)", *_COUNTS, "median duration")
        rows = [*((day.isoformat(), *_figures(sums)) for day, sums in by_day.items()), ("total", *_figures(total))]
        title = clean(f"{feed}, last {days} days")
        OUT.show(
            {"feed": str(feed), "totals": vars(total), "days": daily},
            lambda: table(columns, rows, title=title, right=columns[1:]),
        )


def _figures(sums: Any) -> list[str]:
    median = span(sums.median_seconds) if sums.median_seconds is not None else ""
    return [*(count_text(getattr(sums, name)) for name in _COUNTS), median]


def read_pairs(pairs: list[str]) -> dict[str, Any]:
    """Return settings from `name=value`; `thresholds.name=value` goes into a dictionary of its own."""
    settings: dict[str, Any] = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not equals or not name.strip():
            raise InvalidInput(
                f"{pair!r} is not a setting; write settings as NAME=VALUE, such as path=/catalog.csv.gz."
            )
        group_name, dot, threshold = name.strip().partition(".")
        if dot:
            settings.setdefault(group_name, {})[threshold] = value
        else:
            settings[group_name] = value
    return settings


def _switch(verb: str, name: str, outcome: str, **options: Any) -> None:
    with session():
        from harvester.cli import feed_views
        from harvester.feeds import verbs

        feed = getattr(verbs, verb)(operator(), verbs.feed_named(name).id, **options)
        _show(feed, f"{feed} {outcome}; {feed_views.plan_of(feed)}.")


def _show(feed: Any, message: str) -> None:
    from harvester.cli import feed_views

    OUT.show(feed_views.public(feed), lambda: message)


def _ask(prompt: str) -> str:
    """Ask for a secret. It is never an argument, because process lists show arguments."""
    if not sys.stdin.isatty():
        raise InvalidInput("There is no terminal to ask for the password; pipe it in with --password-stdin.")
    return getpass.getpass(prompt)


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
        from harvester.cli import run_views
        from harvester.cli.job_wait import wait_for_end
        from harvester.feeds import verbs

        made = verbs.run_now(operator(), verbs.feed_named(name).id, force=force)
        if not wait:
            message = f"The run was queued as job {made.job_id}. Follow it: harvester jobs show {made.job_id} --wait"
            OUT.show({"job_id": made.job_id}, lambda: message)
            return
        wait_for_end(made.job_id)
        found_run = run_views.run_of_job(made.job_id)
        if found_run is None:
            ending = run_views.ending_of_job(made.job_id)
            OUT.show(ending, lambda: run_views.ending_sentence(ending, name))
            if ending["state"] != "succeeded":
                raise typer.Exit(Exit.FAILED)
            return
        found = run_views.summary(found_run.no)
        OUT.show(found, lambda: run_views.summary_view(found))
        if found["status"] != RunStatus.SUCCEEDED:
            raise typer.Exit(Exit.FAILED)
        if found["outcome"] == RunOutcome.HELD:
            raise typer.Exit(Exit.HELD)


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
