"""What a consumer finds while a run is held. Needs Django."""

from rich.console import RenderableType
from rich.text import Text

from harvester.catalog.search import Page, search
from harvester.catalog.search_query import Query, Sort
from harvester.cli.demo.catalog import CURRENCY, SECOND
from harvester.cli.demo.shop import KESTREL
from harvester.cli.offer_views import list_table
from harvester.cli.output import stacked
from harvester.feeds.models import Feed
from harvester.kernel.errors import TerminalError

#: Something that the held run lacks altogether.
_TEXT, _SIZE = "boot", 5
COMMAND = f"harvester offers search {_TEXT} --source {KESTREL.name} --currency {CURRENCY} --sort price --size {_SIZE}"


def sample_search(feed: Feed) -> RenderableType:
    """What the command prints; refused unless it is what the last promoted catalog says."""
    query = Query(text=_TEXT, source_id=feed.source_id, currency=CURRENCY, sort=Sort.PRICE, page_size=_SIZE)
    found = search(query)
    _check(found)
    return stacked(Text(f"$ {COMMAND}", style="bold"), list_table(found.offers))


def _check(found: Page) -> None:
    said = [(product.amount, product.number, product.sku) for product in SECOND.products if "Boot" in product.noun]
    wanted = [(sku, amount) for amount, _, sku in sorted(said)][:_SIZE]
    got = [(offer.sku, offer.amount) for offer in found.offers]
    if got != wanted:
        raise TerminalError(f"The story did not come out. {COMMAND} finds {got} instead of {wanted}.")
