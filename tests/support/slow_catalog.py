"""What runs leave behind, row by row in dictionaries: matching and promotion as they would be written for ten rows."""

from django.conf import settings

from harvester.feeds.networks import network_named
from harvester.feeds.reader import ParseSettings
from tests.support.slow_parse import slow_parse

CONTENT = (
    *("title", "url", "tracked_url", "image_url", "brand", "category", "description"),
    *("item_id", "sku", "gtin", "mpn", "url_hash"),
)
PRICE = ("amount", "currency", "original_amount", "promotion", "in_stock", "signature")


class SlowCatalog:
    """Products by their identity, each with its content, its prices and whether the last run saw it."""

    def __init__(self, moment):
        self._settings = ParseSettings(moment=moment, allowed_networks=settings.CONFIG.egress_networks)
        self.contents, self.prices, self.seen = {}, {}, set()

    def read(self, data, *, delimiter, quoted):
        """The products of a file; the last valid row of each counts."""
        rows = slow_parse(data, network_named("impact"), self._settings, delimiter=delimiter, quoted=quoted).rows
        return {(row["identity_type"], row["identity_value"]): row for row in rows}

    def promote(self, products, *, every_price=False):
        """Take over what a file says; prices only if they differ from the last one, or all are due."""
        for identity, row in products.items():
            self.contents[identity] = tuple(row[name] for name in CONTENT)
            history = self.prices.setdefault(identity, [])
            price = tuple(row[name] for name in PRICE)
            if every_price or not history or history[-1][-1] != price[-1]:
                history.append(price)
        self.seen = set(products)

    def offers(self):
        """Identity -> the newest price, and whether the product is still there."""
        return {identity: (*history[-1][:3], history[-1][4], identity in self.seen)
                for identity, history in self.prices.items()}  # fmt: skip
