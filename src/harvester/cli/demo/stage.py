"""Starts and stops the demo's processes and tells what is going on."""

import os
import time
from collections.abc import Sequence
from pathlib import Path

from rich.text import Text

from harvester.cli.actor import operator
from harvester.cli.demo.home import USERNAME, DemoHome, prepare_home
from harvester.cli.demo.partner import Partner
from harvester.cli.output import OUT, stacked
from harvester.cli.session import Tables, close_connections, session
from harvester.cli.signals import StopRequest
from harvester.cli.supervisor import Child, Supervisor
from harvester.cli.up import free_address, local_address, tend, wait_for_portal
from harvester.kernel.errors import TransientError

USUAL_LISTEN = "127.0.0.1:8000"
#: It started before the story, so it normally answers long before this is asked.
PORTAL_SECONDS = 60.0


def perform(stop: StopRequest, *, once: bool, port: int | None) -> None:
    """The whole evening."""
    began = time.monotonic()
    OUT.say(Text.assemble(("Harvester demo: ", "bold"), "two catalogs, from a partner's server to what people see"))
    listen = _address(port)
    home = prepare_home(os.environ)
    for remark in home.remarks:
        OUT.say(Text(remark, style="yellow"))
    with (
        home.log_file.open("a", encoding="utf-8") as log,
        session(Tables.MIGRATED, service=True, log_stream=log) as config,
        Partner(home.partner_directory) as partner,
    ):
        workers, others = _children(listen, home.log_file)
        supervisor = Supervisor([*others, *workers], stop, grace_seconds=config.grace_seconds)
        try:
            held = _play(supervisor, workers, stop, partner, home)
            _await_portal(supervisor, stop, listen)
            _end(home, listen, held, time.monotonic() - began, once=once)
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


def _children(listen: str, log: Path) -> tuple[list[Child], list[Child]]:
    """Two workers, one of which is going to be killed, and everything else."""
    workers = [
        Child(name=name, arguments=["worker", "--threads", "4", "--name", name], log_file=log)
        for name in ("worker-1", "worker-2")
    ]
    others = [
        Child(name="web", arguments=["web"], env={"HARVESTER_LISTEN": listen}, log_file=log),
        Child(name="scheduler", arguments=["scheduler"], log_file=log),
    ]
    return workers, others


def _play(supervisor: Supervisor, workers: Sequence[Child], stop: StopRequest, partner: Partner, home: DemoHome) -> int:
    """Answers the number of the run that is held."""
    from harvester.cli.demo.consumer import sample_search
    from harvester.cli.demo.narration import beginning, came_out, event_line, summary, waiting
    from harvester.cli.demo.shop import HARBOUR_STREET, KESTREL, open_shop
    from harvester.cli.demo.story import Story, cancel_leftovers

    _make_login(home)
    cancel_leftovers()
    feeds = {shop.name: open_shop(shop, partner) for shop in (KESTREL, HARBOUR_STREET)}
    feed = feeds[KESTREL.name]
    OUT.say(beginning(home, partner, feeds))
    supervisor.start()
    with OUT.screen.status("four runs, one after the other"):

        def tell(sentence: str) -> None:
            OUT.say(event_line(sentence))

        advice = f"{home.log_file} says more; to begin anew, remove {home.path}."
        story = Story(feeds, partner, workers, supervisor=supervisor, stop=stop, tell=tell, advice=advice)
        played = story.play(lambda one: tell(came_out(one)))
    OUT.say(stacked(summary(played), waiting(played[-1]), Text(""), sample_search(feed)))
    return played[-1].run.no


def _make_login(home: DemoHome) -> None:
    from harvester.ops import users
    from harvester.ops.models import Role, User

    person = User.objects.filter(username=USERNAME).first()
    if person is None:
        users.create(operator(), USERNAME, home.password, Role.ADMIN)
    elif not person.check_password(home.password):
        users.set_password(operator(), USERNAME, home.password)


def _await_portal(supervisor: Supervisor, stop: StopRequest, listen: str) -> None:
    if wait_for_portal(supervisor, stop, listen, PORTAL_SECONDS):
        return
    if stop.asked:
        raise KeyboardInterrupt
    raise TransientError(f"The portal did not answer on {listen} within {PORTAL_SECONDS:.0f} s; the log says why.")


def _end(home: DemoHome, listen: str, held: int, seconds: float, *, once: bool) -> None:
    from harvester.cli.demo.narration import ending

    more = "Ending, because of --once." if once else "All of it runs until Ctrl-C."
    last = Text(f"The story took {seconds:.0f} s and came out as it should. {more}", style="bold green")
    OUT.say(stacked(ending(home, f"http://{local_address(listen)}/", held, workers_stay=not once), last))
