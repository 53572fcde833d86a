"""No read shows consumers a scraped price of an INELIGIBLE source. Generated from every address and every command.

A new part of the portal, of the API or of the command line fails here until somebody says who reads it.
"""

import re

import pytest
import typer
from django.test import Client
from django.urls import get_resolver
from tests.support import catalog
from tests.support.api import Application
from tests.support.commands_inside import harvester
from tests.support.page_observations import confirm, observed, product_of, promote
from tests.support.portal import addresses, person

from harvester.catalog import offers, sources
from harvester.catalog.resolver import create_by_hand
from harvester.cli.app import app
from harvester.kernel.actor import system
from harvester.kernel.stock import Availability
from harvester.ops.models import Role, User

pytestmark = pytest.mark.django_db
TEST = system("test")
#: In no id and no time: amounts of the two pages, and the cost of a round by one of them.
SECRETS = ("678.91", "678.93", "678,91", "678,93", "67891", "67893", "13.579")

CONSUMERS, OPERATORS, OTHER = "consumers", "operators", "no offers"
#: First word of an address of the API -> who gets offers from it.
API = {
    "offers": CONSUMERS, "products": CONSUMERS, "retailers": CONSUMERS, "sources": CONSUMERS, "brands": CONSUMERS,
    "categories": CONSUMERS, "feeds": OPERATORS, "runs": OPERATORS, "scrape": OPERATORS, "jobs": OTHER,
    "openapi.json": OTHER, "docs": OTHER, "docs.css": OTHER, "": OTHER,
}  # fmt: skip
#: First word of an address of the portal. Its users are operators; what they see of offers is what consumers see,
#: except where hidden prices are named as such.
PORTAL = {
    "": CONSUMERS, "offers": CONSUMERS, "retailers": CONSUMERS, "sources": CONSUMERS, "review": CONSUMERS,
    "feeds": CONSUMERS, "corrections": OPERATORS, "runs": OPERATORS,
    **dict.fromkeys(("shops", "pages", "quarantine", "url-health", "imports", "adapters", "try-url"), OPERATORS),
    **dict.fromkeys(("account", "alerts", "api-keys", "audit", "healthz", "job-events", "jobs", "login", "logout",
                     "metrics", "periodic-jobs", "readyz", "users"), OTHER),
}  # fmt: skip
#: First word of a command.
COMMANDS = {
    "offers": CONSUMERS, "retailer": CONSUMERS, "source": CONSUMERS, "review": CONSUMERS, "feed": OPERATORS,
    "runs": OPERATORS, "corrections": OPERATORS, "scrape": OPERATORS,
}  # fmt: skip
#: Every command of a group for consumers that reads -> its arguments, with {names} of the world.
READS = {
    "offers search": ["{word}", "--json"],
    "offers list": ["--json"],
    "offers show": ["{source}", "{product_id}", "--json"],
    "offers history": ["{source}", "{product_id}", "--json"],
    "retailer list": ["--json"],
    "source list": ["--json"],
    "source show": ["{source}", "--json"],
    "retailer show": ["{retailer_id}", "--json"],
    "review list": ["--json"],
    "review find": ["{word}", "--json"],
}
#: They read nothing that is a price, or write.
WRITES = {
    "retailer add", "retailer set", "source add", "source set", "source primary", "review link", "review create",
    "review skip", "review reopen",
}  # fmt: skip


@pytest.fixture
def world():
    """A product that a feed and a page have, and one that only a page has. Both pages are newer and lead."""
    source = catalog.source(kind="DIRECT", visibility="INELIGIBLE", name="Leaky", expiry_hours=48)
    both = catalog.product(source, title="Hammer of both", gtin="4006381333931", identity_value="BOTH", sku="BOTH")
    catalog.price(source, both, "10.00", observed_at=catalog.now() - catalog.hours(1))
    offers.recompute(source.pk, [both])
    promote(source, observed("BOTH", "678.91", link=both, availability=Availability.BACKORDER),
            observed("PAGE", "678.93", title="Hammer of a page", caliber="9mm", round_count=50,
                     cost_per_round="13.579 USD"))  # fmt: skip
    confirm(source, both, product_of("PAGE"))
    canonical = create_by_hand("Hammer", None)
    for number in (both, product_of("PAGE")):
        catalog.fetch(
            "INSERT INTO product_links (source_id, source_product_id, product_id, status, match_type) "
            "VALUES (%s, %s, %s, 'LINKED', 'MANUAL')", source.pk, number, canonical,
        )  # fmt: skip
    return {"source": source, "both": both, "page": product_of("PAGE"), "canonical": canonical}


def arguments(world, number):
    """Parameter of an address or a command -> its value; `number` is one of the products."""
    source = world["source"]
    return {
        "source_id": source.pk, "retailer_id": source.retailer_id, "product_id": number, "source": source.name,
        "offer_id": f"{source.pk}.{number}", "word": "hammer", "canonical": world["canonical"],
    }  # fmt: skip


def leaks(text):
    return [secret for secret in SECRETS if secret in text]


def of(whom, table, prefix):
    """The addresses under a prefix of those whose first word is read by them."""
    found = [address for address in addresses(get_resolver().url_patterns) if address.startswith(prefix)]
    found = [address for address in found if address.startswith("/api/") == prefix.startswith("/api/")]
    return [each for each in found if table[each.removeprefix(prefix).partition("/")[0]] == whom]


def filled(address, given):
    return re.sub(r"<(?:\w+:)?(\w+)>", lambda found: str(given[found[1]]), address)


def test_every_address_and_command_is_classified():
    found = list(addresses(get_resolver().url_patterns))
    api = {each.removeprefix("/api/v1/").partition("/")[0] for each in found if each.startswith("/api/v1/")}
    portal = {each.removeprefix("/").partition("/")[0] for each in found if not each.startswith("/api/")}
    assert api == set(API)
    assert portal == set(PORTAL)
    groups = typer.main.get_command(app).commands
    reading = {
        f"{group} {name}" for group, whom in COMMANDS.items() if whom == CONSUMERS for name in groups[group].commands
    }
    assert reading == set(READS) | WRITES
    assert set(groups) - set(COMMANDS) == {
        "alerts", "api-keys", "audit", "demo", "doctor", "import", "jobs", "keys", "migrate", "scheduler", "up", "user",
        "web", "worker",
    }  # fmt: skip


def api_reads(world):
    """The texts of all reads of offers over the API."""
    application, texts = Application(), {}
    more = [
        ("/api/v1/offers", {"q": "hammer"}),
        ("/api/v1/offers", {"currency": "USD", "sort": "-price"}),
        ("/api/v1/offers/lookup", {"gtin": "4006381333931"}),
        ("/api/v1/offers/lookup", {"sku": "PAGE"}),
    ]
    for number in (world["both"], world["page"]):
        given = arguments(world, number)
        for address in of(CONSUMERS, API, "/api/v1/"):
            path = filled(address, {**given, "product_id": given["canonical"]})
            texts[path] = application.get(path, {"sku": "BOTH"} if path.endswith("lookup") else {}).content.decode()
    for path, parameters in more:
        texts[f"{path}?{parameters}"] = application.get(path, parameters).content.decode()
    return texts


def portal_reads(world):
    """The texts of all pages, without the table of hidden prices of an offer."""
    client, texts = Client(), {}
    client.force_login(User.objects.filter(username="ada").first() or person("ada", Role.ADMIN))
    for number in (world["both"], world["page"]):
        given = arguments(world, number)
        for address in of(CONSUMERS, PORTAL, "/"):
            if not set(re.findall(r"<(?:\w+:)?(\w+)>", address)) <= set(given):
                assert address.startswith("/feeds/"), f"{address}: add its parameters to arguments()"
                continue
            answer = client.get(filled(address, given), follow=True)
            texts[filled(address, given)] = re.sub(
                r'<section class="[^"]*" id="hidden">.*?</section>', "", answer.content.decode(), flags=re.DOTALL
            )
    return texts


def command_reads(world):
    texts = {}
    for number in (world["both"], world["page"]):
        for command, words in READS.items():
            filled_in = [word.format(**arguments(world, number)) for word in words]
            ran = harvester(*command.split(), *filled_in)
            texts[f"{command} {filled_in}"] = ran.out + ran.err
    return texts


@pytest.mark.parametrize("reads", [api_reads, portal_reads, command_reads])
def test_no_read_of_an_ineligible_source_shows_a_scraped_price(world, reads):
    found = {path: leaks(text) for path, text in reads(world).items()}
    assert len(found) >= 12
    assert {path: secrets for path, secrets in found.items() if secrets} == {}
    # The same world shows them as soon as it may, so that nothing above was merely missing.
    sources.update(TEST, world["source"].pk, visibility="ELIGIBLE")
    seen = {secret for text in reads(world).values() for secret in leaks(text)}
    assert {"678.91", "678.93"} <= seen


def test_switching_back_hides_them_again(world):
    for visibility in ("ELIGIBLE", "INELIGIBLE"):
        sources.update(TEST, world["source"].pk, visibility=visibility)
    assert {path: found for path, text in api_reads(world).items() if (found := leaks(text))} == {}
    assert catalog.fetch("SELECT amount::float FROM visible_offers") == [(10.0,)]
