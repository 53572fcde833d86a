"""`harvester keys ...`: the keys that encrypt credentials."""

from typing import Annotated, Any

import typer
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

from harvester.cli.actor import operator
from harvester.cli.commands import command, group
from harvester.cli.exit_codes import Exit
from harvester.cli.output import OUT, stacked, table
from harvester.cli.session import session
from harvester.kernel.config import KEY_VARIABLE

app = group(
    "keys", "List and rotate the keys that encrypt credentials.", ("harvester keys list", "harvester keys rotate")
)


@command(
    app,
    "generate",
    (f"export {KEY_VARIABLE}=$(harvester keys generate)", "harvester keys generate --id 2026-01"),
    data=True,
)
def generate(
    *,
    key_id: Annotated[str, typer.Option("--id", help="Id to put in front; needed with more than one key.")] = "",
) -> None:
    """Print a new random key. It is not stored: put it into the environment of every process."""
    from harvester.guards.vault import KeyRing, generate_key

    key = generate_key()
    text = f"{key_id}:{key}" if key_id else key
    KeyRing.parse(text, source="--id")
    OUT.show({"key": text}, lambda: text)


@command(app, "list", ("harvester keys list",), data=True)
def list_keys() -> None:
    """List the ids of the keys, never the keys themselves, and how many credentials each has encrypted."""
    with session() as config:
        from harvester.guards.vault import KEY_FILE_NAME, key_ring
        from harvester.ops.keys import sealed_by_key

        ring, sealed = key_ring(config), sealed_by_key()
        missing = [key_id for key_id in sealed if key_id not in ring.key_ids]
        keys = [
            {
                "id": key_id,
                "writes": key_id == ring.writing_id,
                "sealed": sealed.get(key_id, 0),
                "known": key_id not in missing,
            }
            for key_id in (*ring.key_ids, *missing)
        ]
        source = KEY_VARIABLE if config.encryption_keys else str(config.home / KEY_FILE_NAME)
        columns = ("id", "use", "credentials")
        uses = dict.fromkeys(ring.key_ids, "decrypts") | {ring.writing_id: "encrypts and decrypts"}
        uses |= dict.fromkeys(missing, "MISSING: its credentials cannot be decrypted")
        rows = [(key["id"], uses[str(key["id"])], key["sealed"]) for key in keys]
        OUT.show(
            {"source": source, "keys": keys},
            lambda: stacked(f"The keys come from {source}.", table(columns, rows, right=columns[2:])),
        )


@command(app, "rotate", ("harvester keys rotate",), data=True)
def rotate() -> None:
    """Encrypt every credential again with the first key of the ring.

    It may be interrupted and run again. docs/operations.md, under Keys, gives the order in which keys are added and
    removed and processes restarted.
    """
    with session():
        from harvester.ops import keys

        total = sum(keys.sealed_by_key().values())
        columns = (TextColumn("encrypting again"), BarColumn(), MofNCompleteColumn())
        progress: Any = None
        # The bar goes to stderr; the last step has the final figures.
        with Progress(*columns, console=OUT.errors, transient=True, disable=OUT.as_json) as bar:
            task = bar.add_task("", total=total)
            for progress in keys.rotate(operator()):
                bar.update(task, completed=total - progress.left)
        lines = [f"{progress.rewritten} credentials were encrypted again; {progress.left} are left."]
        lines += [
            f"{owner} cannot be decrypted ({code}); it was not changed." for owner, code in progress.unreadable.items()
        ]
        if progress.busy:
            lines.append(f"{progress.busy} were in use; run the command again.")
        data = {"rewritten": progress.rewritten, "left": progress.left, "unreadable": dict(progress.unreadable)}
        OUT.show(data, lambda: stacked(*lines))
        if progress.left:
            raise typer.Exit(Exit.FAILED)
