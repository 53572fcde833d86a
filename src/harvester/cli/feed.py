"""`harvester feed ...`: set up feeds and switch them. A feed goes by the name of its source."""

import getpass
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from harvester.cli.actor import operator
from harvester.cli.commands import command, group
from harvester.cli.exit_codes import Exit
from harvester.cli.output import OUT
from harvester.cli.session import session
from harvester.kernel.errors import InvalidInput

app = group(
    "feed",
    "Affiliate feeds: set up, test, run, and decide about runs that are held.",
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
        "--accept-insecure", help="Use plain FTP although anyone on the way can read the password: I accept this risk."
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
    """Make the feed of a source, as a draft that does not run yet.

    `harvester feed set --help` lists the settings; network is needed. Credentials and the host key come next.
    """
    given = read_pairs(settings)
    with session():
        from harvester.cli import feed_views
        from harvester.feeds import verbs

        feed = verbs.create(operator(), feed_views.source_named(name).id, given, accept_insecure=accept_insecure)
        _tell(feed, f"{feed} is a draft now. Next: {feed_views.next_steps(feed)}.")


@command(app, "list", ("harvester feed list", "harvester feed list --json"), data=True)
def list_feeds() -> None:
    """List all feeds with their state, their schedule and their last run."""
    with session():
        from harvester.cli import feed_views

        feeds = feed_views.all_feeds()
        OUT.show({"feeds": feeds}, lambda: feed_views.list_table(feeds))


@command(
    app, "show", ('harvester feed show "Acme by Impact"', 'harvester feed show "Acme by Impact" --json'), data=True
)
def show(name: Name) -> None:
    """Show a feed: its settings, what it lacks, its host keys and its last runs."""
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
    """Change settings of a feed. An empty value takes a setting back to its default, if it has one.

    Settings: network, schedule_hours (1, 2, 4, 6, 12, 24, or manual), expiry_hours (1 to 168), transport, host, port,
    path, username, compression, encoding, default_currency, decimal_style, unknown_stock (IN_STOCK, OUT_OF_STOCK,
    REJECT), kept_parameters (names with commas between them), use_manifest, max_file_bytes, max_rows, max_products,
    accepts_url_identity, unchanged_means_seen; and thresholds.NAME for expiry_share, expiry_least, expiry_most,
    url_hash_share, url_hash_most, shock_move, shock_share, shock_least, reject_share, reject_least.
    """
    given = read_pairs(settings)
    with session():
        from harvester.feeds import verbs

        feed = verbs.update(operator(), verbs.feed_named(name).id, given, accept_insecure=accept_insecure)
        _tell(feed, f"{feed} was changed.")


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
    private_key_file: Annotated[Path | None, typer.Option(help="Take the private key from this file.")] = None,
    ask_passphrase: Annotated[
        bool, typer.Option("--ask-passphrase", help="Ask for the passphrase of the private key.")
    ] = False,
    replace: Annotated[bool, typer.Option("--replace", help="Secrets that are not given now go.")] = False,
) -> None:
    """Change how a feed logs in. The password is asked for unless something else is given; nothing typed keeps it."""
    with session():
        from harvester.feeds import verbs

        feed = verbs.feed_named(name)
        asks = not (username or password_stdin or private_key_file)
        feed = verbs.change_credentials(
            operator(),
            feed.id,
            username=username,
            password=_from_stdin() if password_stdin else _asked("Password (empty keeps it): ") if asks else "",
            private_key=_file(private_key_file) if private_key_file else "",
            passphrase=_asked("Passphrase of the private key: ") if ask_passphrase else "",
            replace=replace,
        )
        _tell(feed, f"{feed} logs in as {feed.username or '(nobody)'} with {_words(feed.secret_fields)}.")


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
        typer.Argument(metavar="KEY", help="Approve this key: its fingerprint if a test run showed it, or all of it."),
    ] = "",
    *,
    keep_others: Annotated[bool, typer.Option("--add", help="Keys that were approved before stay.")] = False,
) -> None:
    """Show the host keys of a feed's server, or approve one. Compare it with what the partner says first."""
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
    wait: Annotated[bool, typer.Option(help="Wait for a worker to do it, and show what it found.")] = True,
) -> None:
    """Try a feed on its first rows, without a run: host key, columns, ten rows, and what is refused."""
    with session():
        from harvester.cli import feed_views
        from harvester.cli.job_wait import wait_for_end
        from harvester.feeds import verbs

        made = verbs.test_run(operator(), verbs.feed_named(name).id)
        if not wait:
            OUT.show(
                {"job_id": made.job_id},
                lambda: f"Job {made.job_id} will try it; see: harvester jobs show {made.job_id}",
            )
            return
        wait_for_end(made.job_id)
        found = feed_views.test_result(made.job_id)
        OUT.show(found, lambda: feed_views.test_view(found, name))
        if not found["success"]:
            raise typer.Exit(Exit.FAILED)


@command(app, "enable", ('harvester feed enable "Acme by Impact"',), data=True)
def enable(name: Name) -> None:
    """Let a draft run, if it has everything that a run needs."""
    _switch("enable", name, "is enabled")


@command(app, "pause", ('harvester feed pause "Acme by Impact"',), data=True)
def pause(name: Name) -> None:
    """Stop a feed until it is resumed; a run at work goes on."""
    _switch("pause", name, "is paused")


@command(app, "resume", ('harvester feed resume "Acme by Impact"',), data=True)
def resume(name: Name) -> None:
    """Let a paused feed run again."""
    _switch("resume", name, "is enabled again")


@command(app, "re-enable", ('harvester feed re-enable "Acme by Impact" --acknowledge',), data=True)
def re_enable(
    name: Name,
    *,
    acknowledge: Annotated[bool, typer.Option("--acknowledge", help="Somebody looked at why its runs failed.")] = False,
) -> None:
    """Let a feed run again that was disabled by repeated failures."""
    _switch("re_enable", name, "is enabled again", acknowledged=acknowledge)


@command(app, "delete", ('harvester feed delete "Acme by Impact"',), data=True)
def delete(name: Name) -> None:
    """Delete a draft that has no runs, with its credentials; the source stays."""
    with session():
        from harvester.feeds import verbs

        feed = verbs.feed_named(name)
        verbs.delete_draft(operator(), feed.id)
        OUT.show({"id": feed.id, "name": str(feed), "deleted": True}, lambda: f"{feed} was deleted.")


@command(app, "retire", ('harvester feed retire "Acme by Impact" --yes',), data=True)
def retire(
    name: Name, *, yes: Annotated[bool, typer.Option("--yes", help="Retire it; it cannot be used again.")] = False
) -> None:
    """Retire a paused or disabled feed for good: its credentials are deleted; its runs and prices stay."""
    if not yes:
        raise InvalidInput("A retired feed cannot be used again. Nothing was changed; say --yes to retire it.")
    with session():
        from harvester.feeds import verbs

        feed = verbs.retire(operator(), verbs.feed_named(name).id)
        OUT.show({"id": feed.id, "name": str(feed), "retired_at": feed.retired_at}, lambda: f"{feed} is retired.")


def read_pairs(pairs: list[str]) -> dict[str, Any]:
    """`name=value` as settings; `thresholds.name=value` goes with its kind."""
    read: dict[str, Any] = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not equals or not name.strip():
            raise InvalidInput(
                f"{pair!r} is no setting; settings are given as NAME=VALUE, such as path=/catalog.csv.gz."
            )
        kind, dot, threshold = name.strip().partition(".")
        if dot:
            read.setdefault(kind, {})[threshold] = value
        else:
            read[kind] = value
    return read


def _switch(verb: str, name: str, told: str, **options: Any) -> None:
    with session():
        from harvester.cli import feed_views
        from harvester.feeds import verbs

        feed = getattr(verbs, verb)(operator(), verbs.feed_named(name).id, **options)
        _tell(feed, f"{feed} {told}; {feed_views.plan_of(feed)}.")


def _tell(feed: Any, sentence: str) -> None:
    from harvester.cli import feed_views

    OUT.show(feed_views.public(feed), lambda: sentence)


def _from_stdin() -> str:
    line = sys.stdin.readline().rstrip("\r\n")
    if not line:
        raise InvalidInput("--password-stdin was said, but standard input is empty.")
    return line


def _asked(prompt: str) -> str:
    """Never from the command line, where every process list shows it."""
    if not sys.stdin.isatty():
        raise InvalidInput("There is no terminal to ask on; pipe the password in and say --password-stdin.")
    return getpass.getpass(prompt)


def _file(path: Path) -> str:
    try:
        return path.read_text(encoding="ascii")
    except (OSError, UnicodeDecodeError):
        raise InvalidInput(
            f"--private-key-file {path} cannot be read as a private key; it must be a text file."
        ) from None


def _words(names: list[str]) -> str:
    return " and ".join(name.replace("_", " ") for name in names) or "nothing"
