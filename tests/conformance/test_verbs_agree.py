"""What people do with pages and runs can be done in the portal, over the API and on the command line.

The table is checked against the real addresses and commands: one that is new belongs into a line of it, and a surface
that lacks the verb needs a reason.
"""

from collections import Counter

import pytest
import typer
from django.urls import URLResolver, get_resolver

from harvester.api.app import api
from harvester.cli.app import app

#: Verb, addresses of the portal by name, operations of the API, commands. Those that are not of runs begin with
#: `scraping_` in the portal, and with `scrape` on the command line.
TABLE = """
list runs            | runs_run_changelist        | list_runs                  | runs list
show a run           | runs_run_change            | get_run                    | runs show
approve a run        | runs_run_approve           | approve_run                | runs approve
reject a run         | runs_run_reject            | reject_run                 | runs reject
ignore a run         | runs_run_ignore            | ignore_run                 | runs ignore
undo ignoring a run  | runs_run_undo_ignore       | undo_ignore_run            | runs undo-ignore
get a file           | runs_run_file              | get_run_file               | runs file
list shops           | shop_changelist            | list_scraped_sources       | list
show a shop          | shop_change                | get_scraped_source         | show
coverage of fields   | shop_coverage              | get_scraped_source         | -
review the terms     | shop_terms                 | record_terms_review        | review
set a shop           | shop_settings              | update_scrape_settings     | set
enable a shop        | shop_enable                | enable_scraping            | enable
stop a shop          | shop_stop                  | stop_scraping              | stop
stop all shops       | shop_stop_all              | stop_all_scraping          | stop
forbid a shop        | shop_robots                | set_robots_compliant       | robots
fetch robots.txt     | shop_check_robots          | check_robots               | check-robots
pause requests       | shop_pause                 | pause_scraping             | pause
resume requests      | shop_resume                | resume_scraping            | resume
show prices          | shop_show                  | show_scraped_prices        | show-prices
hide prices          | shop_hide                  | hide_scraped_prices        | hide-prices
read pages now       | shop_read scrapetarget_read | enqueue_pages              | run
re-queue stale pages | shop_requeue               | requeue_stale_pages        | requeue
try an address       | try_changelist try_change  | try_url get_tried_url      | try
draft a site file    | -                          | -                          | new-site
back-test            | shop_override_test         | backtest_source            | backtest
look for places      | shop_hints                 | get_repair_hints           | hints
list pages           | scrapetarget_changelist    | list_targets               | target list
show a page          | scrapetarget_change        | get_target                 | target show
readings of a page   | scrapetarget_change        | list_readings              | target readings
add a page           | scrapetarget_add           | add_target                 | target add
set a page           | scrapetarget_edit          | update_target              | target set
enable a page        | scrapetarget_enable scrapetarget_disable | update_target              | target set
pause a page         | scrapetarget_pause         | pause_target               | target pause
resume a page        | scrapetarget_resume        | resume_target              | target resume
move a page          | scrapetarget_move health_move | move_target                | target move
unpin a page         | scrapetarget_unpin         | unpin_target               | target unpin
forget places        | scrapetarget_forget        | forget_places              | target forget-places
reprocess a page     | scrapetarget_reprocess     | reprocess_target           | target reprocess
delete a page        | scrapetarget_delete        | delete_target              | target delete
change many pages    | scrapetarget_bulk          | change_targets             | target set-all
delete many pages    | scrapetarget_bulk          | change_targets             | target delete-all
health of addresses  | health_changelist          | get_url_health             | target health
list imports         | import_changelist          | list_imports               | import list
import a list        | import_changelist          | create_import              | import file
import from a feed   | import_feed                | import_pages_of_feed       | import feed
show an import       | import_change              | get_import list_import_lines | import show
choose for a shop    | import_choose              | choose_for_shop            | import choose
link lines           | import_links               | link_lines                 | import link
start an import      | import_start               | start_import               | import start
cancel an import     | import_cancel              | cancel_import              | import cancel
list adapters        | adapter_changelist         | list_adapters              | adapter list
show an adapter      | adapter_change             | get_adapter_of_source      | adapter list
choose an adapter    | shop_adapter               | choose_adapter             | adapter choose
enable an adapter    | adapter_enable             | enable_adapter             | adapter enable
disable an adapter   | adapter_disable            | disable_adapter            | adapter disable
confirm a run        | adapter_confirm            | confirm_run                | adapter confirm
list overrides       | shop_overrides shop_override | list_overrides             | adapter overrides
save an override     | shop_overrides             | save_override              | adapter override
test an override     | shop_override_test         | test_override              | adapter test
use an override      | shop_override_use          | use_override               | adapter use
retire an override   | shop_override_retire       | retire_override            | adapter retire
list quarantine      | quarantineentry_changelist | list_quarantine            | quarantine list
show an entry        | quarantineentry_change     | get_quarantined_page read_quarantined_page | quarantine show
write an entry       | quarantineentry_write      | write_quarantined_offer    | quarantine write
reprocess an entry   | quarantineentry_reprocess  | reprocess_quarantined_page | quarantine reprocess
choose a place       | quarantineentry_choose     | choose_places              | quarantine choose
propose an override  | quarantineentry_propose    | choose_places              | quarantine propose
dismiss an entry     | quarantineentry_dismiss    | dismiss_quarantined_page   | quarantine dismiss
"""
#: Verb -> why a surface lacks it.
LACKING = {
    "draft a site file": "it writes files into a checkout of the source code",
    "coverage of fields": "a chart of 30 days; `runs show` counts the fields of one run",
}
PORTAL, API, COMMANDS = range(3)


def lines() -> dict[str, tuple[list[str], list[str], list[str]]]:
    found = {}
    for line in TABLE.strip().splitlines():
        verb, portal, operations, command = (cell.strip() for cell in line.split("|"))
        names = [name if name.startswith("runs_") else f"scraping_{name}" for name in portal.split() if name != "-"]
        full = command if command.startswith("runs ") else f"scrape {command}"
        found[verb] = names, [name for name in operations.split() if name != "-"], [full] if command != "-" else []
    return found


def addresses_of_portal() -> set[str]:
    def names(patterns):
        for pattern in patterns:
            if isinstance(pattern, URLResolver):
                yield from names(pattern.url_patterns)
            else:
                yield pattern.name or ""

    return {name for name in names(get_resolver().url_patterns) if name.startswith(("scraping_", "runs_"))}


def operations_of_api() -> set[str]:
    paths = api.get_openapi_schema()["paths"]
    return {
        operation["operationId"]
        for address, methods in paths.items()
        for operation in methods.values()
        if address.startswith(("/api/v1/scrape/", "/api/v1/runs"))
    }


def commands() -> set[str]:
    def names(found, before):
        for name, each in found.commands.items():
            if hasattr(each, "commands"):
                yield from names(each, [*before, name])
            else:
                yield " ".join([*before, name])

    return {name for name in names(typer.main.get_command(app), []) if name.startswith(("scrape ", "runs "))}


@pytest.mark.parametrize(
    ("place", "real"), [(PORTAL, addresses_of_portal), (API, operations_of_api), (COMMANDS, commands)]
)
def test_every_address_and_command_is_a_verb_of_the_table(place, real):
    named = {name for cells in lines().values() for name in cells[place]}
    exist = real()
    assert len(exist) > 30
    assert named == exist


def test_a_verb_that_a_surface_lacks_has_a_reason():
    lacking = {verb for verb, cells in lines().items() if not all(cells)}
    assert lacking == LACKING.keys()


def test_a_verb_has_one_line():
    verbs = Counter(line.partition("|")[0].strip() for line in TABLE.strip().splitlines())
    assert [verb for verb, times in verbs.items() if times > 1] == []
    changes = Counter(name for _, operations, _ in lines().values() for name in operations)
    shared = {name for name, times in changes.items() if times > 1}
    assert shared == {"get_scraped_source", "update_target", "change_targets", "choose_places"}
