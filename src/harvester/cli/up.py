"""`harvester up`: portal, workers and scheduler as child processes of one that also holds the database."""

import http.client
import os
import time

from rich.text import Text

from harvester.cli.output import OUT, pairs, stacked
from harvester.cli.portal_server import bind
from harvester.cli.session import Tables, close_connections, read_config, require_redis, revive_database, session
from harvester.cli.signals import StopRequest
from harvester.cli.supervisor import Child, Supervisor
from harvester.kernel.config import Config

#: Between requests to the portal until it responds.
LOOK_SECONDS = 0.2
#: Timeout of such a request.
ANSWER_SECONDS = 2


def run_all(stop: StopRequest, *, workers: int, threads: int | None) -> None:
    config = read_config()
    listen = free_address(config.listen)
    require_redis(config)
    with session(Tables.MIGRATED, service=True):
        from harvester.ops.models import User

        has_users = User.objects.filter(is_active=True).exists()
        close_connections()
        children = [web_child(listen), *worker_children(config, workers, threads), scheduler_child()]
        supervisor = Supervisor(children, stop, grace_seconds=config.grace_seconds)
        try:
            if not stop.asked:
                supervisor.start()
            if wait_for_portal(supervisor, stop, listen):
                _welcome(config, listen, workers, has_users=has_users)
            supervisor.run(lambda: tend(config))
        finally:
            OUT.say("Stopping ...")
            supervisor.stop()
    OUT.say("All processes have stopped.")


def tend(config: Config) -> None:
    """Restart the embedded database if it died, for example because the kernel killed it for its memory."""
    if config.embedded:
        revive_database(config)


def free_address(listen: str) -> str:
    """Return the address with port 0 replaced by a free port. Raise if it cannot be used, before anything starts."""
    with bind(listen) as listener:
        return f"{listen.rpartition(':')[0]}:{listener.getsockname()[1]}"


def web_child(listen: str) -> Child:
    return Child(name="web", arguments=["web"], env={"HARVESTER_LISTEN": listen})


def worker_children(config: Config, workers: int, threads: int | None, *more: str) -> list[Child]:
    arguments = ["worker", *(["--threads", str(threads)] if threads else []), *more]
    children = []
    for number in range(1, workers + 1):
        # WORKER_ID alone would give all workers the same name.
        name = ["--name", f"{config.worker_id}-{number}"] if config.worker_id else []
        children.append(Child(name=f"worker {number}", arguments=[*arguments, *name]))
    return children


def scheduler_child() -> Child:
    return Child(name="scheduler", arguments=["scheduler"])


def wait_for_portal(supervisor: Supervisor, stop: StopRequest, listen: str, seconds: float = float("inf")) -> bool:
    """Supervise the children until the portal responds. Return False after a stop or a timeout."""
    deadline = time.monotonic() + seconds
    while not stop.asked and time.monotonic() < deadline:
        if answers(listen):
            return True
        stop.wait(min(LOOK_SECONDS, supervisor.look_after()))
    return False


def answers(listen: str) -> bool:
    """Return whether an HTTP server responds; its status does not matter, because allowed hosts may reject us."""
    host, _, port = local_address(listen).rpartition(":")
    connection = http.client.HTTPConnection(host.strip("[]"), int(port), timeout=ANSWER_SECONDS)
    try:
        connection.request("GET", "/healthz")
        connection.getresponse()
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()
    return True


def local_address(listen: str) -> str:
    """Return the address at which this machine reaches the server."""
    host, _, port = listen.rpartition(":")
    any_host = {"0.0.0.0": "127.0.0.1", "[::]": "[::1]"}  # noqa: S104 - compared, not bound
    return f"{any_host.get(host, host)}:{port}"


def _welcome(config: Config, listen: str, workers: int, *, has_users: bool) -> None:
    database = f"embedded, in {config.home}" if config.embedded else "HARVESTER_DATABASE_URL"
    rows = [
        ("portal", f"http://{local_address(listen)}/"),
        ("database", database),
        ("workers", workers),
        ("supervisor", os.getpid()),
    ]
    advice = None if has_users else Text("Nobody can log in yet. To add a user: harvester user add NAME --role admin")
    heading = Text("Harvester is running.", style="bold green")
    OUT.say(stacked(heading, pairs(rows), advice, Text("Press Ctrl-C to stop it.")))
