"""`harvester scrape ...`: read product pages of shops: which, how, how fast, and what came of it."""

import json
from pathlib import Path
from typing import Annotated, Any
from uuid import UUID

import typer

from harvester.cli import scrape_adapters, scrape_lists, scrape_targets
from harvester.cli.actor import operator
from harvester.cli.commands import command, group
from harvester.cli.exit_codes import Exit
from harvester.cli.feed import read_pairs
from harvester.cli.output import OUT
from harvester.cli.session import session
from harvester.kernel.errors import InvalidInput

app = group(
    "scrape",
    "Read product pages of shops, and decide about what they say.",
    (
        "harvester scrape try https://shop.example/product/hammer       what a page says; writes nothing",
        "harvester scrape import file pages.csv                         pages of many shops",
        'harvester scrape show "Shop pages"                             what is ready, and what is missing',
        'harvester scrape run "Shop pages" --wait',
    ),
)
app.add_typer(scrape_targets.app)
app.add_typer(scrape_lists.app)
app.add_typer(scrape_adapters.app)
app.add_typer(scrape_targets.quarantine_app)

SourceName = Annotated[str, typer.Argument(metavar="SOURCE", help="The name or id of a source.")]
Wait = Annotated[bool, typer.Option("--wait", help="Wait until it is done, and show the result.")]
Note = Annotated[str, typer.Option(help="Why; others will ask.")]


@command(app, "list", ("harvester scrape list", "harvester scrape list --json"), data=True)
def list_shops() -> None:
    """List sources whose pages are read or could be, with what needs attention."""
    with session():
        from harvester.cli import scrape_views

        found = scrape_views.shops()
        OUT.show({"sources": found}, lambda: scrape_views.shops_table(found))


@command(app, "show", ('harvester scrape show "Shop pages"', 'harvester scrape show "Shop pages" --json'), data=True)
def show(source: SourceName) -> None:
    """Show a source: what is ready and what is missing, pages, pace, adapter, settings."""
    with session():
        from harvester.catalog import sources
        from harvester.cli import scrape_views

        found = scrape_views.shop(sources.find(source))
        OUT.show(found, lambda: scrape_views.shop_view(found))


@command(
    app,
    "review",
    ('harvester scrape review "Shop pages" --note "Terms of 2026-11-01 allow price comparison, section 4"',),
    data=True,
)
def review(source: SourceName, *, note: Note) -> None:
    """Record that you have read the shop's terms of service and that they allow reading its pages."""
    with session():
        from harvester.catalog import sources
        from harvester.scraping import verbs

        found = verbs.record_review(operator(), sources.find(source).pk, note)
        OUT.show(
            {"source_id": found.pk, "tos_reviewed_at": found.tos_reviewed_at, "tos_approved_by": found.tos_approved_by},
            lambda: f"The review of {found} was recorded.",
        )


@command(
    app,
    "set",
    (
        'harvester scrape set "Shop pages" requests_per_second=0.2 default_currency=USD',
        'harvester scrape set "Shop pages" requests_per_second=        back to the default',
    ),
    data=True,
)
def change(
    source: SourceName, settings: Annotated[list[str], typer.Argument(metavar="SETTING=VALUE...", help="See above.")]
) -> None:
    """Change how a source is read; an empty value restores the default.

    Settings: requests_per_second (0.01 to 5), pace_by_host (hosts with a pace of their own, separated by commas),
    default_currency, headers (lines Name: value), conditional, cache, cache_seconds. `harvester scrape show` has
    their values.
    """
    given = read_pairs(settings)
    with session():
        from harvester.catalog import sources
        from harvester.scraping import verbs
        from harvester.scraping.settings import effective

        found = verbs.update_settings(operator(), sources.find(source).pk, given)
        OUT.show(
            {"source_id": found.pk, "settings": effective(found.scrape_config)},
            lambda: f"{found} was changed: {', '.join(sorted(given))}.",
        )


@command(app, "enable", ('harvester scrape enable "Shop pages"',), data=True)
def enable(
    source: SourceName,
    *,
    keep_visibility: Annotated[
        bool, typer.Option("--keep-visibility", help="Consumers may see what its pages say at once.")
    ] = False,
) -> None:
    """Let the pages of a source be read. What they say stays hidden until harvester scrape show-prices."""
    with session():
        from harvester.catalog import sources
        from harvester.scraping import verbs
        from harvester.scraping.readiness import warnings

        found = verbs.enable(operator(), sources.find(source).pk, keep_visibility=keep_visibility)
        noted = warnings(found)
        shown = "are hidden until `harvester scrape show-prices`" if found.visibility == "INELIGIBLE" else "are shown"
        OUT.show(
            {"source_id": found.pk, "scrape_enabled": True, "visibility": found.visibility, "warnings": noted},
            lambda: " ".join([f"Pages of {found} may be read from now on; their prices {shown}.", *noted]),
        )


@command(
    app,
    "stop",
    ('harvester scrape stop "Shop pages" --reason "the shop asked"', "harvester scrape stop --all"),
    data=True,
)
def stop(
    source: Annotated[str, typer.Argument(metavar="SOURCE", help="The name or id of a source.")] = "",
    *,
    everything: Annotated[bool, typer.Option("--all", help="Every source.")] = False,
    reason: Annotated[str, typer.Option(help="Why; others will ask.")] = "",
) -> None:
    """Stop reading pages at once. Waiting pages are cancelled; what is shown stays until it expires."""
    if bool(source) == everything:
        raise InvalidInput("Name a source, or say --all. Nothing was changed.")
    with session():
        from harvester.catalog import sources
        from harvester.scraping import verbs

        if everything:
            stopped = verbs.stop_all(operator(), reason)
        else:
            found = sources.find(source)
            stopped = {found.pk: verbs.stop(operator(), found.pk, reason)}
        pages = sum(stopped.values())
        OUT.show(
            {"stopped": {str(key): value for key, value in stopped.items()}},
            lambda: f"Sources stopped: {len(stopped):,}. Waiting pages cancelled: {pages:,}.",
        )


@command(
    app,
    "robots",
    (
        'harvester scrape robots "Shop pages" --forbid --note "legal asked us to stop"',
        'harvester scrape robots "Shop pages" --allow --note "cleared on 2026-11-01"',
    ),
    data=True,
)
def robots(
    source: SourceName,
    *,
    allow: Annotated[bool, typer.Option("--allow/--forbid", help="Whether its pages may be read as a whole.")],
    note: Note,
) -> None:
    """Forbid or allow a source by hand. A page is never read if robots.txt forbids it, whatever this says."""
    with session():
        from harvester.catalog import sources
        from harvester.scraping import verbs

        found = verbs.set_robots_compliant(operator(), sources.find(source).pk, allow, note)
        state = "allowed" if found.robots_compliant else "forbidden; the system will not allow them again by itself"
        OUT.show(
            {"source_id": found.pk, "robots_compliant": found.robots_compliant},
            lambda: f"Pages of {found} are {state}.",
        )


@command(app, "check-robots", ('harvester scrape check-robots "Shop pages"',), data=True)
def check_robots(source: SourceName) -> None:
    """Fetch the robots.txt of a shop unless it is known. Enabling needs it, and a worker has to be running."""
    with session():
        from harvester.catalog import sources
        from harvester.cli import scrape_views
        from harvester.cli.job_wait import wait_for_fetch
        from harvester.scraping import verbs

        asked = verbs.check_robots(operator(), sources.find(source).pk)
        found = [scrape_views.tried(wait_for_fetch(each)) for each in asked]
        lines = [f"{each['asked_url']}: {each.get('robots') or each.get('error') or each['outcome']}" for each in found]
        OUT.show({"checked": found}, lambda: "\n".join(lines) or "Every robots.txt is known and current.")


@command(app, "pause", ('harvester scrape pause "Shop pages" --note "the shop asked for a day"',), data=True)
def pause(source: SourceName, *, note: Note) -> None:
    """Make no request to a shop until somebody resumes it. What becomes due meanwhile is read then."""
    _breaker("pause", source, "is not asked for anything until it is resumed", note)


@command(app, "resume", ('harvester scrape resume "Shop pages"',), data=True)
def resume(source: SourceName) -> None:
    """Ask a shop again that was paused by a person, or that blocked us three times in a row."""
    _breaker("resume", source, "is asked again, first with one request")


@command(app, "show-prices", ('harvester scrape show-prices "Shop pages"',), data=True)
def show_prices(
    source: SourceName,
    *,
    anyway: Annotated[bool, typer.Option("--anyway", help="Although steps of `scrape show` are not done.")] = False,
) -> None:
    """Show consumers what was read from the pages of a source."""
    with session():
        from harvester.catalog import sources
        from harvester.scraping import verbs

        found = verbs.show(operator(), sources.find(source).pk, anyway=anyway)
        OUT.show(
            {"source_id": found.pk, "visibility": found.visibility},
            lambda: f"Consumers see the prices of {found} now, if it is a source that they see at all.",
        )


@command(app, "hide-prices", ('harvester scrape hide-prices "Shop pages"',), data=True)
def hide_prices(source: SourceName) -> None:
    """Hide from consumers what was read from the pages of a source; it is still read. Prices of feeds stay."""
    with session():
        from harvester.catalog import sources
        from harvester.scraping import verbs

        found = verbs.hide(operator(), sources.find(source).pk)
        OUT.show(
            {"source_id": found.pk, "visibility": found.visibility},
            lambda: f"Consumers no longer see what pages of {found} say.",
        )


@command(
    app,
    "run",
    ('harvester scrape run "Shop pages" --wait', 'harvester scrape run "Shop pages" --page 0193... --force'),
    data=True,
)
def run(
    source: SourceName,
    *,
    page: Annotated[list[UUID] | None, typer.Option(help="Only these pages, by id; again for more.")] = None,
    force: Annotated[
        bool, typer.Option("--force", help="Ignore the limits of the queue, for at most ten pages.")
    ] = False,
    wait: Wait = False,
) -> None:
    """Read pages of a source now. Switches, robots.txt and the pace of the shop always count."""
    with session():
        from harvester.catalog import sources
        from harvester.cli import scrape_views
        from harvester.cli.job_wait import wait_for_run
        from harvester.scraping import verbs

        result = verbs.request(operator(), sources.find(source).pk, page or None, force=force).require()
        if wait and result.run is not None:
            wait_for_run(result.run)
        found = scrape_views.enqueued(result)
        OUT.show(found, lambda: scrape_views.enqueued_text(found))


@command(app, "requeue", ('harvester scrape requeue "Shop pages"',), data=True)
def requeue(source: SourceName) -> None:
    """Read all pages of a source again that waited for a day and were given up (STALE)."""
    with session():
        from harvester.catalog import sources
        from harvester.cli import scrape_views
        from harvester.scraping import verbs

        found = scrape_views.enqueued(verbs.requeue_stale(operator(), sources.find(source).pk).require())
        OUT.show(found, lambda: scrape_views.enqueued_text(found))


@command(
    app,
    "try",
    (
        "harvester scrape try https://shop.example/product/hammer",
        'harvester scrape try https://shop.example/product/hammer --source "Shop pages" --json',
    ),
    data=True,
)
def try_url(
    url: Annotated[str, typer.Argument(metavar="URL", help="The address of a product page.")],
    *,
    source: Annotated[str, typer.Option(help="Read it with the adapter and the settings of this source.")] = "",
) -> None:
    """Show what would be read from a page, from where and why. Nothing is written.

    robots.txt and the pace of the shop are kept, so it may take some seconds; a worker has to be running.
    """
    with session():
        from harvester.catalog import sources
        from harvester.cli import scrape_views
        from harvester.cli.job_wait import wait_for_fetch
        from harvester.scraping import single_fetches

        asked = single_fetches.try_url(operator(), url, sources.find(source) if source else None)
        found = scrape_views.tried(wait_for_fetch(asked))
        OUT.show(found, lambda: scrape_views.tried_view(found))
        if found["outcome"] != "OFFER":
            raise typer.Exit(Exit.FAILED)


@command(
    app,
    "new-site",
    (
        "harvester scrape new-site https://shop.example/product/hammer",
        'harvester scrape new-site https://shop.example/product/hammer --price "19.99 USD" --title Hammer --sku H-1',
    ),
    data=True,
)
def new_site(
    url: Annotated[str, typer.Argument(metavar="URL", help="The address of a product page of the shop.")],
    *,
    checkout: Annotated[Path, typer.Option(help="A checkout of Harvester, for the files.")] = Path(),
    title: Annotated[str, typer.Option(help="The title that you see on the page.")] = "",
    price: Annotated[str, typer.Option(help="The price that you see on the page, such as '19.99 USD'.")] = "",
    sku: Annotated[str, typer.Option(help="The article number that you see on the page.")] = "",
) -> None:
    """Fetch a page once and write a first site file from it, with the page as a fixture and a test.

    What you see on the page helps to find the places. robots.txt and the pace of the shop are kept.
    """
    with session():
        from harvester.cli import scrape_views
        from harvester.cli.job_wait import wait_for_fetch
        from harvester.kernel.domains import registrable_domain
        from harvester.kernel.urls import split_url
        from harvester.scraping import kept_pages, single_fetches, site_draft

        asked = wait_for_fetch(single_fetches.new_site(operator(), url))
        if asked.page is None:
            found = scrape_views.tried(asked)
            OUT.show(found, lambda: scrape_views.tried_view(found))
            raise typer.Exit(Exit.FAILED)
        known = {"title": title, "price": price, "sku": sku}
        draft = site_draft.write_draft(
            checkout.absolute(),
            domain=registrable_domain(split_url(asked.url).host),
            url=asked.url,
            body=kept_pages.read_body(asked.page),
            content_type=(asked.result or {}).get("content_type") or "text/html",
            known={name: text for name, text in known.items() if text} or None,
        )
        facts = {
            "site_id": draft.site_id,
            "files": [str(file) for file in draft.files],
            "places": draft.places,
            "outcome": draft.reading.outcome.value,
            "detail": draft.reading.detail,
        }
        OUT.show(facts, lambda: scrape_views.draft_view(facts))


@command(
    app,
    "backtest",
    (
        'harvester scrape backtest "Shop pages"',
        'harvester scrape backtest "Shop pages" --overrides changed.json --json',
    ),
    data=True,
)
def backtest(
    source: SourceName,
    *,
    overrides: Annotated[
        Path | None, typer.Option(help="A JSON file with overrides to try instead of those that are active.")
    ] = None,
) -> None:
    """Read the kept pages of a source again, and show what differs from what was read then. Nothing is written."""
    given = _read_overrides(overrides) if overrides else None
    with session():
        from harvester.catalog import sources
        from harvester.cli import scrape_views
        from harvester.scraping import page_review

        report = page_review.backtest(sources.find(source), given).as_json()
        OUT.show(report, lambda: scrape_views.backtest_view(report))


@command(app, "hints", ('harvester scrape hints "Shop pages"',), data=True)
def hints(source: SourceName) -> None:
    """Show where the last known titles, prices and SKUs are on the newest pages, for an adapter that lost them."""
    with session():
        from harvester.catalog import sources
        from harvester.cli import scrape_views
        from harvester.scraping import page_review

        found = [
            {"field": hint.field, "place": hint.place, "found": hint.found, "pages": hint.pages}
            for hint in page_review.hints(sources.find(source))
        ]
        OUT.show({"hints": found}, lambda: scrape_views.hints_table(found))


def _breaker(verb: str, source: str, done: str, *more: str) -> None:
    with session():
        from harvester.catalog import governance, sources
        from harvester.scraping.states import RUN_KIND

        found = sources.find(source)
        getattr(governance, verb)(operator(), found.pk, RUN_KIND, *more)
        [state] = [each for each in governance.states([found.pk]) if each.kind == RUN_KIND]
        OUT.show({"source_id": found.pk, "gate": state.gate}, lambda: f"{found} {done}.")


def _read_overrides(path: Path) -> dict[str, Any]:
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as problem:
        raise InvalidInput(f"{path} cannot be read as JSON: {problem}.", field="--overrides") from None
    if not isinstance(found, dict):
        raise InvalidInput(
            f'{path} must be an object such as {{"places": {{"price": [".price::text"]}}}}.', field="--overrides"
        )
    return found
