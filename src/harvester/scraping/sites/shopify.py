"""Shops on Shopify with its basic themes: Dawn and those derived from it, and the older ones."""

from typing import Final

from harvester.scraping.site import Site

SHOPIFY: Final = Site(
    id="shopify",
    version="1.0.0",
    title="Shopify shop",
    places={
        "title": (".product__title > h1::text", "h1.product-single__title::text", "h1.product__title::text"),
        "availability": ("button[name=add]::text",),
        "price": (
            ".product__info-container [id^=price-] .price::text",
            ".product__info-container .price::text",
            ".product-single__meta .product-single__price::text",
            ".product-single__price--wrapper .product-single__price::text",
            "[data-product-price]::text",
        ),
    },
    exclude=(".card", ".card-wrapper", "product-recommendations", ".related-products", "sticky-atc"),
    tiers="volume-pricing, .volume-pricing-note, .price-per-item__container",
)
