"""sgammo.com: WooCommerce with a theme of its own, whose classes lead.

The page has a table of quantity discounts and related products with the same classes of WooCommerce; the structured
data of the theme names the shop as the brand.
"""

from typing import Final

from harvester.scraping.site import Site

_DETAILS: Final = ".sgammo-content-single-product__details__right"
SGAMMO: Final = Site(
    id="sgammo",
    version="1.0.0",
    title="SG Ammo",
    domains=("sgammo.com",),
    places={
        "title": ("h1.sgammo-content-single-product__title::text",),
        "price": (f"{_DETAILS}__price .woocommerce-Price-amount::text",),
        "availability": (f"{_DETAILS} .stock::text", ".sgammo-content-single-product .stock::text"),
        "sku": (f"{_DETAILS}__sku::text", "json:sku"),
    },
    exclude=(".related", ".upsells", ".cross-sells", ".products"),
    tiers=".sgammo-content-single-product table, [class*=quantity-discount], [class*=bulk], [class*=tiered]",
    sku_pattern=r"(?is)^\s*(?:sku\s*:?\s*)?(.+?)\s*$",
)
