"""Shops on WooCommerce with one of its usual themes, classic or made of blocks."""

from typing import Final

from harvester.scraping.site import Site

WOOCOMMERCE: Final = Site(
    id="woocommerce",
    version="1.0.0",
    title="WooCommerce shop",
    places={
        "title": (".product_title::text", "h1.wp-block-post-title::text"),
        "availability": (
            ".summary .stock::text",
            ".wc-block-add-to-cart-form .stock::text",
        ),
        "price": (
            ".summary > .price::text",
            ".summary .price:not(.woocommerce-variation-price *)::text",
            ".wp-block-woocommerce-product-price .wc-block-components-product-price::text",
        ),
        "sku": (".product_meta .sku::text", ".wp-block-woocommerce-product-sku .sku::text"),
    },
    exclude=(
        ".related",
        ".upsells",
        ".cross-sells",
        ".up-sells",
        ".wc-block-product-template",
        ".wp-block-woocommerce-related-products",
        ".widget",
    ),
    tiers=".pricing-table, .bulk_table, .tiered-pricing-table, .wdp_bulk_table_content, .tiered-pricing-block",
)
