"""Starts and stops the processes of the demo, and prints its progress."""

import os
import time
from collections.abc import Sequence

from rich.text import Text

from harvester.cli.actor import operator
from harvester.cli.demo.home import USERNAME, DemoHome, prepare_home
from harvester.cli.demo.page_shop import PageShop
from harvester.cli.demo.partner import Partner
from harvester.cli.output import OUT, stacked
from harvester.cli.session import Tables, close_connections, session
from harvester.cli.signals import StopRequest
from harvester.cli.supervisor import Child, Supervisor
from harvester.cli.up import free_address, local_address, tend, wait_for_portal
from harvester.kernel.errors import TransientError

USUAL_LISTEN = "127.0.0.1:8000"
#: Timeout for the portal, which is started before the runs and so normally responds long before they end.
PORTAL_SECONDS = 60.0


def perform(stop: StopRequest, *, once: bool, port: int | None) -> None:
    """Run the demo."""
    began = time.monotonic()
    OUT.say(Text.assemble(("Harvester demo: ", "bold"), "two catalogs and a shop's pages, on their way to consumers"))
    listen = _address(port)
    home = prepare_home(os.environ)
    for remark in home.remarks:
        OUT.say(Text(remark, style="yellow"))
    with (
        home.log_file.open("a", encoding="utf-8") as log,
        session(Tables.MIGRATED, service=True, log_stream=log) as config,
        Partner(home.partner_directory) as partner,
        PageShop() as shop,
    ):
        workers = [
            Child(name=name, arguments=["worker", "--threads", "4", "--name", name], log_file=home.log_file)
            for name in ("worker-1", "worker-2")
        ]
        others = [
            Child(name="web", arguments=["web"], env={"HARVESTER_LISTEN": listen}, log_file=home.log_file),
            Child(name="scheduler", arguments=["scheduler"], log_file=home.log_file),
        ]
        supervisor = Supervisor([*others, *workers], stop, grace_seconds=config.grace_seconds)
        try:
            held = _play(supervisor, workers, stop, (partner, shop), home)
            if not wait_for_portal(supervisor, stop, listen, PORTAL_SECONDS):
                if stop.asked:
                    raise KeyboardInterrupt
                raise TransientError(
                    f"The portal did not respond on {listen} within {PORTAL_SECONDS:.0f} s; {home.log_file} says why."
                )
            from harvester.cli.demo.story import ending

            more = "Stopping, because of --once." if once else "Everything runs until Ctrl-C."
            took = f"The demo took {time.monotonic() - began:.0f} s. All results are as expected."
            links = ending(home, f"http://{local_address(listen)}/", held, workers_stay=not once)
            OUT.say(stacked(links, Text(f"{took} {more}", style="bold green")))
            if not once:
                supervisor.run(lambda: tend(config))
        finally:
            OUT.say("Stopping ...")
            close_connections()
            supervisor.stop()
    OUT.say("All processes have stopped.")


def _address(port: int | None) -> str:
    """Return the portal's address. Another port is used if the default one is taken, but not if one was given."""
    given = os.environ.get("HARVESTER_LISTEN", "").strip()
    try:
        listen = free_address(f"127.0.0.1:{port}" if port is not None else given or USUAL_LISTEN)
    except TransientError:
        if given or port is not None:
            raise
        listen = free_address("127.0.0.1:0")
        OUT.say(Text(f"{USUAL_LISTEN} is in use; the portal uses {listen}.", style="yellow"))
    os.environ["HARVESTER_LISTEN"] = listen
    return listen


def _play(
    supervisor: Supervisor,
    workers: Sequence[Child],
    stop: StopRequest,
    servers: tuple[Partner, PageShop],
    home: DemoHome,
) -> int:
    """Run all acts, and return the number of the held run."""
    from harvester.cli.demo.page_story import PageStory, pages_summary
    from harvester.cli.demo.shop import HARBOUR_STREET, KESTREL, open_shop
    from harvester.cli.demo.story import (
        Story,
        beginning,
        came_out,
        cancel_leftovers,
        event_line,
        sample_search,
        summary,
        waiting,
    )
    from harvester.ops import users
    from harvester.ops.models import Role, User

    user = User.objects.filter(username=USERNAME).first()
    if user is None:
        users.create(operator(), USERNAME, home.password, Role.ADMIN)
    elif not user.check_password(home.password):
        users.set_password(operator(), USERNAME, home.password)
    cancel_leftovers()
    partner, pages = servers
    feeds = {shop.name: open_shop(shop, partner) for shop in (KESTREL, HARBOUR_STREET)}
    OUT.say(beginning(home, partner, feeds))
    supervisor.start()
    with OUT.screen.status("four runs of feeds, then two over pages"):

        def report(event: str) -> None:
            OUT.say(event_line(event))

        advice = f"For details see {home.log_file}. To start over, remove {home.path}."
        story = Story(feeds, partner, workers, supervisor=supervisor, stop=stop, report=report, advice=advice)
        played = story.play(lambda one: report(came_out(one)))
        read = PageStory(pages, story.wait).play(report)
    OUT.say(stacked(summary(played), waiting(played[-1]), Text(""), sample_search(feeds[KESTREL.name])))
    OUT.say(pages_summary(read))
    return played[-1].run.no
