"""`harvester keys ...`: the keys that seal credentials."""

from typing import Annotated, Any

import typer
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

from harvester.cli.actor import operator
from harvester.cli.commands import command, group
from harvester.cli.exit_codes import Exit
from harvester.cli.output import OUT, stacked, table
from harvester.cli.session import session
from harvester.kernel.config import KEY_VARIABLE, Config

app = group("keys", "The keys that seal credentials.", ("harvester keys list", "harvester keys rotate"))


@command(
    app,
    "generate",
    (f"export {KEY_VARIABLE}=$(harvester keys generate)", "harvester keys generate --id 2026-01"),
    data=True,
)
def generate(
    *,
    key_id: Annotated[str, typer.Option("--id", help="Put this id in front, as a ring of several keys needs it.")] = "",
) -> None:
    """Print a new random key. It is kept nowhere: put it into the environment of every process."""
    from harvester.guards.vault import KeyRing, generate_key

    key = generate_key()
    text = f"{key_id}:{key}" if key_id else key
    KeyRing.parse(text, source="--id")
    OUT.show({"key": text}, lambda: text)


@command(app, "list", ("harvester keys list",), data=True)
def list_keys() -> None:
    """List the keys by their ids, never the keys themselves, and what each of them has sealed."""
    with session() as config:
        from harvester.guards.vault import key_ring
        from harvester.ops.keys import sealed_by_key

        ring, sealed = key_ring(config), sealed_by_key()
        missing = [key_id for key_id in sealed if key_id not in ring.key_ids]
        keys = [_key(key_id, ring.writing_id, sealed) for key_id in (*ring.key_ids, *missing)]
        keys = [{**key, "known": key["id"] not in missing} for key in keys]
        data = {"source": _source(config), "keys": keys}
        OUT.show(data, lambda: stacked(f"The keys come from {data['source']}.", _table(keys)))


@command(app, "rotate", ("harvester keys rotate",), data=True)
def rotate() -> None:
    """Seal every credential anew with the first key of the ring.

    It may be interrupted and run again. In which order keys are added and dropped, and when processes are restarted,
    is told in docs/operations.md under Keys.
    """
    with session():
        from harvester.ops import keys

        before = keys.sealed_by_key()
        reached = _with_bar(keys.rotate(operator()), sum(before.values()))
        data = {"rewritten": reached.rewritten, "left": reached.left, "unreadable": dict(reached.unreadable)}
        OUT.show(data, lambda: _outcome(reached))
        if reached.left:
            raise typer.Exit(Exit.FAILED)


def _source(config: Config) -> str:
    from harvester.guards.vault import KEY_FILE_NAME

    return KEY_VARIABLE if config.encryption_keys else str(config.home / KEY_FILE_NAME)


def _key(key_id: str, writing_id: str, sealed: dict[str, int]) -> dict[str, Any]:
    return {"id": key_id, "writes": key_id == writing_id, "sealed": sealed.get(key_id, 0)}


def _table(keys: list[dict[str, Any]]) -> Any:
    rows = [(key["id"], _use(key), key["sealed"]) for key in keys]
    return table(("id", "use", "credentials sealed with it"), rows, right=("credentials sealed with it",))


def _use(key: dict[str, Any]) -> str:
    if not key["known"]:
        return "MISSING: what it sealed cannot be opened"
    return "writes and reads" if key["writes"] else "reads"


def _with_bar(steps: Any, total: int) -> Any:
    """The bar goes to stderr; the last step is the answer."""
    columns = (TextColumn("sealing anew"), BarColumn(), MofNCompleteColumn())
    reached = None
    with Progress(*columns, console=OUT.errors, transient=True, disable=OUT.as_json) as bar:
        task = bar.add_task("", total=total)
        for reached in steps:
            bar.update(task, completed=total - reached.left)
    return reached


def _outcome(reached: Any) -> Any:
    told = [f"{reached.rewritten} credentials were sealed anew; {reached.left} are left."]
    told += [f"{owner} does not open ({code}); it was left as it is." for owner, code in reached.unreadable.items()]
    if reached.busy:
        told.append(f"{reached.busy} were in use; run it again.")
    return stacked(*told)
