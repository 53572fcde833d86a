"""Starts and stops the demo's processes and tells what is going on."""

import os
import sys
import time
from pathlib import Path

from rich.console import RenderableType
from rich.text import Text

from harvester.cli.actor import operator
from harvester.cli.demo.home import USERNAME, DemoHome, prepare_home
from harvester.cli.output import OUT, pairs, stacked
from harvester.cli.session import Tables, close_connections, session
from harvester.cli.signals import StopRequest
from harvester.cli.supervise import Child, Supervisor
from harvester.cli.up import free_address, local_address, tend, wait_for_portal
from harvester.kernel.errors import TransientError

USUAL_LISTEN = "127.0.0.1:8000"
#: It started before the story, so it normally answers long before this is asked.
PORTAL_SECONDS = 60.0


def perform(stop: StopRequest, *, once: bool, port: int | None) -> None:
    """The whole evening."""
    began = time.monotonic()
    OUT.say(Text.assemble(("Harvester demo: ", "bold"), "jobs of every outcome on a real PostgreSQL, in ten seconds"))
    listen = _address(port)
    home = prepare_home(os.environ)
    for remark in home.remarks:
        OUT.say(Text(remark, style="yellow"))
    with (
        home.log_file.open("a", encoding="utf-8") as log,
        session(Tables.MIGRATED, service=True, log_stream=log) as config,
    ):
        OUT.say(_beginning(home))
        doomed, children = _children(listen, home.log_file)
        supervisor = Supervisor(children, stop, grace_seconds=config.grace_seconds)
        try:
            _play(supervisor, doomed, stop, listen)
            OUT.say(_ending(home, listen, time.monotonic() - began, once=once))
            if not once:
                supervisor.run(lambda: tend(config))
        finally:
            OUT.say("Stopping ...")
            close_connections()
            supervisor.stop()
    OUT.say("Everything has stopped.")


def _address(port: int | None) -> str:
    """The usual port may be taken by anything; only one that was asked for is insisted on."""
    asked = os.environ.get("HARVESTER_LISTEN", "").strip()
    try:
        listen = free_address(f"127.0.0.1:{port}" if port is not None else asked or USUAL_LISTEN)
    except TransientError:
        if asked or port is not None:
            raise
        listen = free_address("127.0.0.1:0")
        OUT.say(Text(f"{USUAL_LISTEN} is in use; the portal gets {listen}.", style="yellow"))
    os.environ["HARVESTER_LISTEN"] = listen
    return listen


def _beginning(home: DemoHome) -> RenderableType:
    from harvester.engine.models import Job

    earlier = Job.objects.count()
    _make_login(home)
    data = f"of an earlier demo, with {earlier} jobs" if earlier else "new"
    rows = [("database", f"embedded PostgreSQL in {home.path}"), ("data", data), ("log", home.log_file)]
    return stacked(pairs(rows), Text("Starting portal, workers and scheduler ..."))


def _make_login(home: DemoHome) -> None:
    from harvester.ops import users
    from harvester.ops.models import Role, User

    person = User.objects.filter(username=USERNAME).first()
    if person is None:
        users.create(operator(), USERNAME, home.password, Role.ADMIN)
    elif not person.check_password(home.password):
        users.set_password(operator(), USERNAME, home.password)


def _children(listen: str, log: Path) -> tuple[Child, list[Child]]:
    """One worker for the job whose worker is going to be killed, one for everything else."""
    from harvester.cli.demo.kinds import DOOMED_QUEUE, QUEUE

    worker = ["worker", "--with-demo-kinds", "--threads", "4", "--queues"]
    doomed = Child(name="worker 2", arguments=[*worker, DOOMED_QUEUE], log_file=log)
    children = [
        Child(name="web", arguments=["web"], env={"HARVESTER_LISTEN": listen}, log_file=log),
        Child(name="worker 1", arguments=[*worker, f"{QUEUE},default,maintenance"], log_file=log),
        doomed,
        Child(name="scheduler", arguments=["scheduler"], log_file=log),
    ]
    return doomed, children


def _play(supervisor: Supervisor, doomed: Child, stop: StopRequest, listen: str) -> None:
    from harvester.cli.demo.story import Story, cancel_leftovers
    from harvester.cli.demo.telling import event_line, going_on, summary

    cancel_leftovers()
    supervisor.start()
    story = Story(supervisor, doomed, stop)
    with OUT.screen.status("waiting for the workers") as status:

        def tell(sentence: str, good: bool) -> None:
            OUT.say(event_line(sentence, good=good))

        acts = story.play(tell, lambda: status.update(going_on(story)))
        status.update("waiting for the portal")
        _await_portal(supervisor, stop, listen)
    OUT.say(summary(acts))


def _await_portal(supervisor: Supervisor, stop: StopRequest, listen: str) -> None:
    if wait_for_portal(supervisor, stop, listen, PORTAL_SECONDS):
        return
    if stop.asked:
        raise KeyboardInterrupt
    raise TransientError(f"The portal did not answer on {listen} within {PORTAL_SECONDS:.0f} s; the log says why.")


def _ending(home: DemoHome, listen: str, seconds: float, *, once: bool) -> RenderableType:
    from harvester.ops.figures import by_state

    states = ", ".join(f"{count} {state}" for state, count in by_state().items() if count)
    rows = [
        ("jobs in the database", states),
        ("portal", f"http://{local_address(listen)}/"),
        ("login", _login(home)),
        ("terminal", f"HARVESTER_HOME={home.path} {_program()} jobs list"),
    ]
    more = "Ending, because of --once." if once else "All of it runs until Ctrl-C."
    return stacked(
        pairs(rows), Text(f"The story took {seconds:.0f} s and came out as it should. {more}", style="bold green")
    )


def _login(home: DemoHome) -> str:
    """The password is shown when it is made, and afterwards only where it is kept."""
    if home.is_new:
        return f"{USERNAME} / {home.password}   (kept in {home.login_file})"
    return f"{USERNAME}, with the password in {home.login_file}"


def _program() -> str:
    """As it was typed, because the environment's bin directory may not be in the search path."""
    typed = Path(sys.argv[0])
    return str(typed) if typed.name == "harvester" else "harvester"
