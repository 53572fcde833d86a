"""Shops on BigCommerce with a theme that is derived from Cornerstone."""

from typing import Final

from harvester.scraping.site import Site

BIGCOMMERCE: Final = Site(
    id="bigcommerce",
    version="1.0.0",
    title="BigCommerce shop",
    places={
        "title": ("h1.productView-title::text",),
        "availability": ("#form-action-addToCart::attr(value)",),
        "price": (
            ".productView-price [data-product-price-with-tax]::text",
            ".productView-price [data-product-price-without-tax]::text",
        ),
        "sku": ("[data-product-sku]::text",),
        "gtin": ("[data-product-upc]::text",),
    },
    exclude=(".card", ".productCarousel", "#tab-related", "#tab-similar", ".quickView"),
    tiers="#bulk-pricing, .productView-info-bulkPricing, .bulkPricing",
)
