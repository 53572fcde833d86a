"""`harvester up`: portal, workers and scheduler as children of one process that also holds the database."""

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

#: How often the portal is asked whether it answers, until it does.
LOOK_SECONDS = 0.2
#: Seconds one such question may take.
ANSWER_SECONDS = 2


def run_all(stop: StopRequest, *, workers: int, threads: int | None) -> None:
    config = read_config()
    listen = free_address(config.listen)
    require_redis(config)
    with session(Tables.MIGRATED, service=True):
        has_people = _anybody()
        close_connections()
        children = [web_child(listen), *worker_children(config, workers, threads), scheduler_child()]
        supervisor = Supervisor(children, stop, grace_seconds=config.grace_seconds)
        try:
            if not stop.asked:
                supervisor.start()
            if wait_for_portal(supervisor, stop, listen):
                _welcome(config, listen, workers, has_people=has_people)
            supervisor.run(lambda: tend(config))
        finally:
            OUT.say("Stopping ...")
            supervisor.stop()
    OUT.say("Everything has stopped.")


def tend(config: Config) -> None:
    """A database server that the kernel killed for want of memory is one of the things that `up` restarts."""
    if config.embedded:
        revive_database(config)


def free_address(listen: str) -> str:
    """Make sure that the portal's address can be had before anything is started; port 0 becomes a free one."""
    with bind(listen) as taken:
        return f"{listen.rpartition(':')[0]}:{taken.getsockname()[1]}"


def web_child(listen: str) -> Child:
    return Child(name="web", arguments=["web"], env={"HARVESTER_LISTEN": listen})


def worker_children(config: Config, workers: int, threads: int | None, *more: str) -> list[Child]:
    arguments = ["worker", *(["--threads", str(threads)] if threads else []), *more]
    children = []
    for number in range(1, workers + 1):
        # Two workers must not go by one name, which WORKER_ID alone would give them.
        named = ["--name", f"{config.worker_id}-{number}"] if config.worker_id else []
        children.append(Child(name=f"worker {number}", arguments=[*arguments, *named]))
    return children


def scheduler_child() -> Child:
    return Child(name="scheduler", arguments=["scheduler"])


def wait_for_portal(supervisor: Supervisor, stop: StopRequest, listen: str, seconds: float = float("inf")) -> bool:
    """Look after the children until the portal answers; False when a stop or the end of the time came first."""
    deadline = time.monotonic() + seconds
    while not stop.asked and time.monotonic() < deadline:
        if answers(listen):
            return True
        stop.wait(min(LOOK_SECONDS, supervisor.look_after()))
    return False


def answers(listen: str) -> bool:
    """Whether anything that speaks HTTP answers; what it says depends on allowed hosts and the like."""
    host, _, port = local_address(listen).rpartition(":")
    asked = http.client.HTTPConnection(host.strip("[]"), int(port), timeout=ANSWER_SECONDS)
    try:
        asked.request("GET", "/healthz")
        asked.getresponse()
    except (OSError, http.client.HTTPException):
        return False
    finally:
        asked.close()
    return True


def local_address(listen: str) -> str:
    """The address under which this machine reaches what it listens on."""
    host, _, port = listen.rpartition(":")
    every = {"0.0.0.0": "127.0.0.1", "[::]": "[::1]"}  # noqa: S104 - looked at, not bound
    return f"{every.get(host, host)}:{port}"


def _anybody() -> bool:
    from harvester.ops.models import User

    return User.objects.filter(is_active=True).exists()


def _welcome(config: Config, listen: str, workers: int, *, has_people: bool) -> None:
    database = f"embedded, in {config.home}" if config.embedded else "HARVESTER_DATABASE_URL"
    rows = [
        ("portal", f"http://{local_address(listen)}/"),
        ("database", database),
        ("workers", workers),
        ("supervisor", os.getpid()),
    ]
    advice = (
        None if has_people else Text("Nobody can log in yet. In another terminal: harvester user add NAME --role admin")
    )
    OUT.say(
        stacked(Text("Harvester is up.", style="bold green"), pairs(rows), advice, Text("Ctrl-C stops everything."))
    )
