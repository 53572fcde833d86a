"""Shops on Magento: version 2 with a theme derived from Luma, and version 1."""

from typing import Final

from harvester.scraping.site import Site

MAGENTO: Final = Site(
    id="magento",
    version="1.0.0",
    title="Magento shop",
    places={
        "title": (".page-title [itemprop=name]::text", "h1.page-title::text", ".product-name h1::text"),
        "availability": (
            ".product-info-main .stock::text",
            ".product-shop .availability span::text",
        ),
        "price": (
            ".product-info-main .price-box.price-final_price::text",
            ".product-info-main .price-box::text",
            ".product-shop .price-box::text",
        ),
        "sku": (".product.attribute.sku .value::text", ".product-shop .sku .value::text"),
    },
    exclude=(".block.related", ".block.upsell", ".block.crosssell", ".box-related", ".box-up-sell", ".products-grid"),
    tiers=".prices-tier, .tier-prices",
)
