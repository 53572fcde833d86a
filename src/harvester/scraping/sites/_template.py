"""Start of a new site file: copy it, rename it, fill it in, and add it to the registry. It is not registered itself.

A place is a CSS selector with `::text` or `::attr(name)`, or `json:` and a path into the product of the structured
data. The first place that says something leads; structured data that differs stops the page in quarantine. Raise the
version with every change, and put fixtures with the expected offers into tests/fixtures/sites/.
"""

from typing import Final

from harvester.scraping.site import Site

TEMPLATE: Final = Site(
    id="template",
    version="1.0.0",
    title="Name of the shop",
    domains=("shop.example",),
    places={
        "title": ("h1.product-title::text",),
        "price": (".product-price .current::text",),
        "availability": (".product-stock::text",),
        "sku": (".product-sku::text", "json:sku"),
    },
    # Parts that are never about the product of the page.
    exclude=(".related-products",),
    # The table of quantity discounts; the price of one piece counts.
    tiers=".quantity-discounts",
    # Phrases of this shop, in lower case, in addition to the usual ones.
    in_stock=(),
    out_of_stock=(),
    backorder=(),
)
