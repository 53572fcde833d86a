"""One function for each theme: an item and what else is on its page, to the page. The structure is that of the theme."""

import json
from html import escape

from tests.unit.scraping_reader.shop_documents import (
    BACK,
    IN,
    OUT,
    REVIEWS,
    Item,
    More,
    ld,
    metas,
    others,
    page,
    plain_card,
)


def woo_storefront(i: Item, m: More) -> str:
    def amount(text: str) -> str:
        sign = text.strip("0123456789.,\xa0 ")
        return f'<span class="woocommerce-Price-amount amount"><bdi>{text.replace(sign, f"""<span class="woocommerce-Price-currencySymbol">{sign}</span>""")}</bdi></span>'

    price = amount(i.shown)
    if i.was:
        price = (f'<del aria-hidden="true">{amount(i.before)}</del> <span class="screen-reader-text">Original price was: {i.before}.</span>'
                 f'<ins aria-hidden="true">{price}</ins><span class="screen-reader-text">Current price is: {i.shown}.</span>')  # fmt: skip
    stock = {IN: '<p class="stock in-stock">14 in stock</p>', OUT: '<p class="stock out-of-stock">Out of stock</p>',
             BACK: '<p class="stock available-on-backorder">Available on backorder</p>'}[i.stock]  # fmt: skip
    form = f"""<form class="cart" action="/product/x/" method="post" enctype='multipart/form-data'><div class="quantity"><label class="screen-reader-text" for="quantity_1">{escape(i.title)} quantity</label>
<input type="number" id="quantity_1" class="input-text qty text" name="quantity" value="1" min="1" max="14"></div><button type="submit" name="add-to-cart" value="{i.number}" class="single_add_to_cart_button button alt">Add to cart</button></form>"""
    related = others(
        i,
        "Related products",
        lambda t, p: (
            f'<li class="product type-product post-9 status-publish instock"><a href="/product/o/" class="woocommerce-LoopProduct-link"><h2 class="woocommerce-loop-product__title">{t}</h2><span class="price">{amount(p)}</span></a><a href="?add-to-cart=9" data-quantity="1" class="button product_type_simple add_to_cart_button ajax_add_to_cart" data-product_id="9">Add to cart</a></li>'
        ),
    )
    word = {IN: "instock", OUT: "outofstock", BACK: "onbackorder"}[i.stock]
    return page(i, f"""<div id="primary" class="content-area"><div class="woocommerce"></div><div id="product-{i.number}" class="product type-product post-{i.number} status-publish first {word} product_cat-outdoor has-post-thumbnail taxable shipping-taxable purchasable product-type-simple">
{'<span class="onsale">Sale!</span>' if i.was else ''}<div class="woocommerce-product-gallery"><figure><img src="/1.jpg"></figure></div><div class="summary entry-summary"><h1 class="product_title entry-title">{escape(i.title)}</h1><div class="woocommerce-product-rating"><div class="star-rating" role="img" aria-label="Rated 4.60 out of 5"><span>Rated <strong class="rating">4.60</strong> out of 5 based on <span class="rating">132</span> customer ratings</span></div></div>
<p class="price">{price}</p>{m.near}<div class="woocommerce-product-details__short-description"><p>Made for long days.</p></div>{stock}{form if i.stock != OUT else ''}
<div class="product_meta"><span class="sku_wrapper">SKU: <span class="sku">{i.sku}</span></span><span class="posted_in">Category: <a href="/c">Outdoor</a></span></div></div>
<div class="woocommerce-tabs wc-tabs-wrapper"><div class="woocommerce-Tabs-panel"><h2>Description</h2><p>Was {i.part('1.5')} last year.</p></div></div>{related}{m.below}</div></div>{REVIEWS}""",
                head=ld(i, m, "spec") + m.head, classes="product-template-default single single-product woocommerce woocommerce-page")  # fmt: skip


def woo_no_stock_text(i: Item, m: More) -> str:
    """Stock is not managed: WooCommerce writes no text about it, and the theme built with a page builder has its own wrappers."""
    price = (
        f'<del><span class="woocommerce-Price-amount amount">{i.before}</span></del> <ins><span class="woocommerce-Price-amount amount">{i.shown}</span></ins>'
        if i.was
        else f'<span class="woocommerce-Price-amount amount">{i.shown}</span>'
    )
    stock = (
        '<p class="stock out-of-stock">Out of stock</p>'
        if i.stock == OUT
        else '<p class="stock available-on-backorder">Available on backorder</p>'
        if i.stock == BACK
        else ""
    )
    form = (
        f'<form class="cart" method="post"><div class="quantity"><input type="number" name="quantity" value="1"></div><button type="submit" name="add-to-cart" value="{i.number}" class="single_add_to_cart_button button alt">Add to cart</button></form>'
        if i.stock != OUT
        else ""
    )
    return page(i, f"""<div data-elementor-type="product" class="elementor elementor-location-single post-{i.number} product type-product {({IN: 'instock', OUT: 'outofstock', BACK: 'onbackorder'})[i.stock]}"><section class="elementor-section"><div class="elementor-container"><div class="elementor-column"><div class="elementor-widget elementor-widget-woocommerce-product-images"><img src="/1.jpg"></div></div>
<div class="elementor-column"><div class="elementor-widget elementor-widget-woocommerce-product-title"><h1 class="product_title entry-title elementor-heading-title">{escape(i.title)}</h1></div><div class="elementor-widget elementor-widget-woocommerce-product-price"><p class="price">{price}</p></div>{m.near}
<div class="elementor-widget elementor-widget-woocommerce-product-add-to-cart"><div class="elementor-add-to-cart elementor-product-simple">{stock}{form}</div></div><div class="elementor-widget elementor-widget-woocommerce-product-meta"><div class="product_meta"><span class="sku_wrapper detail-container"><span class="detail-label">SKU</span> <span class="sku">{i.sku}</span></span></div></div></div></div></section>
{others(i, "You may also like", plain_card)}{m.below}</div>""", head=ld(i, m, "graph") + m.head, classes="single-product elementor-page")  # fmt: skip


def shopify_dawn(i: Item, m: More) -> str:
    on, sold = " price--on-sale" if i.was else "", " price--sold-out" if i.stock == OUT else ""
    label = {IN: "Add to cart", OUT: "Sold out", BACK: "Pre-order"}[i.stock]
    inventory = {
        IN: '<p class="product__inventory" role="status">In stock</p>',
        OUT: '<p class="product__inventory" role="status">Out of stock</p>',
        BACK: "",
    }[i.stock]
    variants = [
        {
            "id": i.number * 10 + n,
            "title": size,
            "sku": i.sku,
            "available": i.stock != OUT,
            "price": int(float(i.price) * 100),
            "compare_at_price": None,
        }
        for n, size in enumerate("SML")
    ]
    return page(i, f"""<section id="shopify-section-main" class="shopify-section section"><section id="MainProduct-main" class="page-width"><div class="product product--medium grid"><div class="grid__item product__media-wrapper"><media-gallery><img src="/1.jpg"></media-gallery></div><div class="product__info-wrapper grid__item"><section id="ProductInfo-main" class="product__info-container product__column-sticky">
<p class="product__text inline-richtext caption-with-letter-spacing">{i.brand}</p><div class="product__title"><h1>{escape(i.title)}</h1><a href="/products/x" class="product__title"><h2 class="h1">{escape(i.title)}</h2></a></div><p class="product__text inline-richtext subtitle"></p>
<div id="price-main" role="status"><div class="price price--large{sold}{on} price--show-badge"><div class="price__container"><div class="price__regular"><span class="visually-hidden visually-hidden--inline">Regular price</span><span class="price-item price-item--regular">{i.shown}</span></div>
<div class="price__sale"><span class="visually-hidden visually-hidden--inline">Regular price</span><span><s class="price-item price-item--regular">{i.before}</s></span><span class="visually-hidden visually-hidden--inline">Sale price</span><span class="price-item price-item--sale price-item--last">{i.shown}</span></div>
<small class="unit-price caption hidden"><span class="visually-hidden">Unit price</span><span class="price-item price-item--last"><span></span><span aria-hidden="true">/</span><span class="visually-hidden">&nbsp;per&nbsp;</span><span></span></span></small></div><span class="badge price__badge-sale">Sale</span><span class="badge price__badge-sold-out">Sold out</span></div></div>
<div class="product__tax caption rte">Taxes included. <a href="/policies/shipping-policy">Shipping</a> calculated at checkout.</div>{m.near}<div><form method="post" action="/cart/add" id="product-form-installment" class="installment caption-large"><input type="hidden" name="id" value="{variants[0]['id']}"></form></div>
<variant-selects id="variant-selects-main"><fieldset class="js product-form__input product-form__input--pill"><legend class="form__label">Size</legend><input type="radio" id="s-0" name="Size" value="S" checked><label for="s-0">S<span class="visually-hidden label-unavailable">Variant sold out or unavailable</span></label><input type="radio" id="s-1" name="Size" value="M" class="disabled"><label for="s-1">M<span class="visually-hidden label-unavailable">Variant sold out or unavailable</span></label></fieldset><script type="application/json" data-selected-variant>{json.dumps(variants[0])}</script></variant-selects>
{inventory}<div id="Quantity-Form-main" class="product-form__input product-form__quantity"><label class="quantity__label form__label">Quantity <span class="quantity__rules-cart hidden">(<span class="quantity-cart">0</span> in cart)</span></label><quantity-input class="quantity"><button class="quantity__button" name="minus" type="button"><span class="visually-hidden">Decrease quantity for {escape(i.title)}</span></button><input class="quantity__input" type="number" name="quantity" value="1"><button class="quantity__button" name="plus" type="button"><span class="visually-hidden">Increase quantity for {escape(i.title)}</span></button></quantity-input></div>
<div><product-form class="product-form" data-section-id="main"><div class="product-form__error-message-wrapper" role="alert" hidden><span class="product-form__error-message"></span></div><form method="post" action="/cart/add" id="product-form-main" class="form" data-type="add-to-cart-form"><input type="hidden" name="id" value="{variants[0]['id']}" class="product-variant-id"><div class="product-form__buttons"><button id="ProductSubmitButton-main" type="submit" name="add" class="product-form__submit button button--full-width button--secondary"{' disabled' if i.stock == OUT else ''}><span>{label}</span><div class="loading__spinner hidden"></div></button><div data-shopify="payment-button" class="shopify-payment-button"><button class="shopify-payment-button__button shopify-payment-button__button--unbranded" disabled>Buy it now</button></div></div></form></product-form>
<pickup-availability class="product__pickup-availabilities quick-add-hidden" available><template><p>Couldn't load pickup availability</p></template></pickup-availability></div><p class="product__sku" id="Sku-main" role="status"><span class="visually-hidden">SKU:</span>{i.sku}</p><div class="product__accordion accordion"><details><summary><h2 class="h4 accordion__title">Shipping</h2></summary><div><p>Ships in 2 days. Express {i.part('0.2')}.</p></div></details></div></section></div></div></section></section>
<div class="shopify-section"><product-recommendations class="related-products page-width"><h2 class="related-products__heading">You may also like</h2><ul class="grid product-grid">{''.join(f'<li class="grid__item"><div class="card-wrapper product-card-wrapper"><div class="card"><h3 class="card__heading"><a href="/products/{n}">Thing {n}</a></h3><div class="price"><div class="price__container"><div class="price__regular"><span class="price-item price-item--regular">From {i.part(str(n))}</span></div></div></div></div></div></li>' for n in (2, 3))}</ul></product-recommendations></div>{m.below}""",
                head=f'<meta property="og:type" content="product"><meta property="og:price:amount" content="{m.markup.get("price", i.price)}"><meta property="og:price:currency" content="{i.currency}">{ld(i, m)}{m.head}' if m.has_markup else m.head, classes="gradient")  # fmt: skip


def shopify_group(i: Item, m: More) -> str:
    """A theme of 2024 and later: a ProductGroup with a variant for each size, prices in elements of the shop's own name."""
    variants = [{"@type": "Product", "@id": f"/products/x?variant={i.number}{n}#variant", "name": f"{i.title} - {size}", "sku": f"{i.sku}-{size}",
                 "offers": {"@type": "Offer", "@id": f"/products/x?variant={i.number}{n}#offer", "availability": "http://schema.org/" + ("OutOfStock" if i.stock == OUT else "InStock"),
                            "price": m.markup.get("price", i.price), "priceCurrency": i.currency, "url": f"https://shop.example/products/x?variant={i.number}{n}"}} for n, size in enumerate(("S", "M"))]  # fmt: skip
    group = {
        "@context": "http://schema.org/",
        "@id": "/products/x#product",
        "@type": "ProductGroup",
        "brand": {"@type": "Brand", "name": i.brand},
        "category": "",
        "description": "d",
        "hasVariant": variants,
        "name": i.title,
        "productGroupID": "77",
        "url": "https://shop.example/products/x",
    }
    was = (
        f'<compare-at-price class="text-subdued line-through"><span class="sr-only">Regular price</span>{i.before}</compare-at-price>'
        if i.was
        else ""
    )
    off = " disabled" if i.stock == OUT else ""
    return page(i, f"""<div class="shopify-section"><div class="product"><div class="product-gallery"><img src="/1.jpg"></div><safe-sticky class="product-info"><div class="product-info__block-item"><a href="/v" class="vendor h6">{i.brand}</a></div><div class="product-info__block-item"><h1 class="product-title h3">{escape(i.title)}</h1></div><div class="product-info__block-item"><div class="v-stack"><price-list role="region" class="price-list price-list--product"><sale-price class="text-lg"><span class="sr-only">{'Sale price' if i.was else 'Price'}</span>{i.shown}</sale-price>{was}</price-list></div></div>{m.near}
<div class="product-info__block-item"><variant-picker class="variant-picker"><fieldset class="variant-picker__option"><legend class="text-subdued">Size:</legend><input type="radio" checked value="S" id="o1"><label for="o1">S</label><input type="radio" value="M" id="o2"><label for="o2">M</label></fieldset></variant-picker></div><div class="product-info__block-item"><form method="post" action="/cart/add" is="product-form" class="shopify-product-form"><input type="hidden" name="id" value="{i.number}0"><div class="v-stack gap-4"><button type="submit" class="button button--lg w-full"{off}>{'Sold out' if i.stock == OUT else 'Add to cart'}</button></div></form></div><variant-inventory><div class="inventory">{'Sold out' if i.stock == OUT else 'In stock, ready to ship'}</div></variant-inventory></safe-sticky></div></div>
{others(i, "You may also like", lambda t, p: f'<product-card class="product-card"><a href="/p" class="product-title">{t}</a><price-list><sale-price>{p}</sale-price></price-list></product-card>')}{m.below}<product-sticky-bar class="product-sticky-bar"><p>{escape(i.title)}</p><price-list><sale-price>{i.shown}</sale-price></price-list><button>Add to cart</button></product-sticky-bar>""",
                head=(f'<script type="application/ld+json">{json.dumps(group)}</script><meta property="og:price:amount" content="{m.markup.get("price", i.price)}"><meta property="og:price:currency" content="{i.currency}">' if m.has_markup else "") + m.head)  # fmt: skip


def shopify_debut(i: Item, m: More) -> str:
    was = (
        f'<dd><s class="price-item price-item--regular" data-regular-price>{i.before}</s></dd>'
        if i.was
        else f'<dd><span class="price-item price-item--regular" data-regular-price>{i.shown}</span></dd>'
    )
    stock = " price--sold-out" if i.stock == OUT else ""
    return page(i, f"""<div id="shopify-section-product-template"><div class="product-template__container page-width" itemscope itemtype="http://schema.org/Product" id="ProductSection-product-template"><meta itemprop="name" content="{escape(i.title)}"><meta itemprop="url" content="https://shop.example/products/x"><meta itemprop="sku" content="{i.sku}"><div class="grid product-single"><div class="grid__item product-single__media-group"><img src="/1.jpg"></div><div class="grid__item"><div class="product-single__meta"><h1 itemprop="name" class="product-single__title">{escape(i.title)}</h1>
<div class="product__price"><dl class="price {'price--on-sale' if i.was else ''}{stock}" data-price><div class="price__regular"><dt><span class="visually-hidden visually-hidden--inline">Regular price</span></dt>{was}</div><div class="price__sale"><dt><span class="visually-hidden visually-hidden--inline">Sale price</span></dt><dd><span class="price-item price-item--sale" data-sale-price>{i.shown}</span></dd></div><div class="price__badges"><span class="price__badge price__badge--sale"><span>Sale</span></span><span class="price__badge price__badge--sold-out"><span>Sold out</span></span></div></dl></div>{m.near}
<div itemprop="offers" itemscope itemtype="http://schema.org/Offer"><meta itemprop="priceCurrency" content="{i.currency}"><meta itemprop="price" content="{m.markup.get('price', i.price)}"><link itemprop="availability" href="http://schema.org/{SCHEMA_OF(i)}"><form method="post" action="/cart/add" class="product-form product-form-product-template" data-product-form><select name="id" class="product-form__variants no-js"><option value="1" selected>Default Title</option></select><div class="product-form__item product-form__item--submit"><button type="submit" name="add" {'disabled aria-disabled="true"' if i.stock == OUT else ''} class="btn product-form__cart-submit" data-add-to-cart><span data-add-to-cart-text>{'Sold out' if i.stock == OUT else 'Add to cart'}</span></button></div></form></div><div class="product-single__description rte" itemprop="description"><p>A good thing.</p></div></div></div></div></div></div>
{others(i, "You may also like", plain_card)}{m.below}<script type="application/json" id="ProductJson-product-template">{json.dumps({"id": 1, "title": i.title, "price": 1, "available": i.stock != OUT})}</script>""", head=m.head)  # fmt: skip


def SCHEMA_OF(i: Item) -> str:  # noqa: N802 - stands in markup like a constant
    return {IN: "InStock", OUT: "OutOfStock", BACK: "PreOrder"}[i.stock]


def magento_luma(i: Item, m: More) -> str:
    amount, listed = m.markup.get("price", i.price), i.was
    offers = 'itemprop="offers" itemscope itemtype="http://schema.org/Offer"' if m.has_markup else ""
    final = f'<span class="price-container price-final_price tax weee" {offers}>{"<span class=price-label>Special Price</span>" if i.was else ""}<span id="product-price-{i.number}" data-price-amount="{amount}" data-price-type="finalPrice" class="price-wrapper "><span class="price">{i.shown}</span></span><meta itemprop="price" content="{amount}"><meta itemprop="priceCurrency" content="{i.currency}"></span>'
    if i.was:
        final = f'<span class="special-price">{final}</span><span class="old-price"><span class="price-container price-final_price tax weee"><span class="price-label">Regular Price</span><span id="old-price-{i.number}" data-price-amount="{listed}" data-price-type="oldPrice" class="price-wrapper "><span class="price">{i.before}</span></span></span></span>'
    stock = {
        IN: '<div class="stock available" title="Availability"><span>In stock</span></div>',
        OUT: '<div class="stock unavailable" title="Availability"><span>Out of stock</span></div>',
        BACK: '<div class="stock available" title="Availability"><span>In stock</span></div>',
    }[i.stock]
    form = f'<div class="product-add-form"><form data-product-sku="{i.sku}" action="/checkout/cart/add/product/{i.number}/" method="post" id="product_addtocart_form"><input type="hidden" name="product" value="{i.number}"><input type="hidden" name="item" value="{i.number}"><div class="box-tocart"><div class="fieldset"><div class="field qty"><label class="label" for="qty"><span>Qty</span></label><input type="number" name="qty" id="qty" value="1" title="Qty" class="input-text qty"></div><div class="actions"><button type="submit" title="Add to Cart" class="action primary tocart" id="product-addtocart-button" disabled><span>Add to Cart</span></button></div></div></div></form></div>'
    related = "".join(
        f'<li class="item product product-item"><div class="product-item-info related-available"><strong class="product name product-item-name"><a class="product-item-link" href="/p{n}">Thing {n}</a></strong><div class="price-box price-final_price" data-role="priceBox" data-product-id="{n}"><span class="price-container price-final_price tax weee"><span id="product-price-{n}" data-price-amount="{i.share(n)}" data-price-type="finalPrice" class="price-wrapper "><span class="price">{i.part(n)}</span></span></span></div><button type="button" class="action tocart primary"><span>Add to Cart</span></button></div></li>'
        for n in ("2", "3")
    )
    return page(i, f"""<div class="page-main"><div class="columns"><div class="column main"><div class="product-info-main"><div class="page-title-wrapper product"><h1 class="page-title"><span class="base" data-ui-id="page-title-wrapper" itemprop="name">{escape(i.title)}</span></h1></div><div class="product-reviews-summary" itemprop="aggregateRating" itemscope itemtype="http://schema.org/AggregateRating"><span itemprop="ratingValue">92</span>% of <span itemprop="bestRating">100</span> <span itemprop="reviewCount">13</span> Reviews</div>
<div class="product-info-price"><div class="price-box price-final_price" data-role="priceBox" data-product-id="{i.number}" data-price-box="product-id-{i.number}">{final}</div><div class="product-info-stock-sku">{stock}<div class="product attribute sku"><strong class="type">SKU</strong><div class="value" itemprop="sku">{i.sku}</div></div></div></div>{m.near}{form if i.stock != OUT else ''}
<div class="product-social-links"><a href="#" class="action towishlist"><span>Add to Wish List</span></a></div><div class="product attribute overview"><div class="value" itemprop="description"><p>A good thing.</p></div></div></div><div class="product media"><div class="gallery-placeholder"><img src="/1.jpg"></div></div><script type="text/x-magento-init">{{"[data-role=priceBox]":{{"priceBox":{{"priceConfig":{{"productId":"{i.number}","prices":{{"oldPrice":{{"amount":{listed or i.price}}},"finalPrice":{{"amount":{i.price}}}}}}}}}}}}}</script>
<div class="product info detailed"><div class="product data items"><div class="data item title"><a class="data switch">Details</a></div><div class="product attribute description"><p>Stock arrives weekly.</p></div></div></div><div class="block related"><div class="block-title title"><strong id="block-related-heading">Related Products</strong></div><div class="block-content content"><div class="products wrapper grid products-grid products-related"><ol class="products list items product-items">{related}</ol></div></div></div>{m.below}</div></div></div>""",
                head=f'<meta property="og:type" content="product"><meta property="product:price:amount" content="{amount}"><meta property="product:price:currency" content="{i.currency}">{m.head}' if m.has_markup else m.head, classes='catalog-product-view page-layout-1column" itemtype="http://schema.org/Product" itemscope="itemscope')  # fmt: skip


def hyva(i: Item, m: More) -> str:
    was = (
        f'<div class="old-price flex mr-2"><span id="product-price-old" class="price-wrapper title-font font-medium text-xl line-through"><span class="price" x-html="">{i.before}</span></span></div>'
        if i.was
        else ""
    )
    stock = f'<p class="flex items-center stock {"unavailable" if i.stock == OUT else "available"} gap-x-2" title="Availability"><svg></svg><span>{"Out of stock" if i.stock == OUT else "In stock"}</span></p>'
    button = '<button type="submit" form="product_addtocart_form" title="Add to Cart" class="btn btn-primary" id="product-addtocart-button" data-addto="cart"><svg></svg><span class="block">Add to Cart</span></button>'
    return page(i, f"""<div class="page-main"><div class="columns"><div class="column main"><section class="text-gray-700 body-font"><div class="flex lg:flex-row flex-col items-center"><div class="grid grid-rows-auto grid-cols-1 md:gap-x-5 md:grid-cols-2"><div class="w-full order-2"><h1 class="text-gray-900 page-title title-font text-3xl font-medium"><span class="base" data-ui-id="page-title-wrapper">{escape(i.title)}</span></h1><div class="my-2"><span class="sr-only">Rating: 92%</span></div>
<div class="flex flex-col sm:flex-row justify-between my-4"><div><div x-data="initPrice{i.number}()" class="price-box price-final_price">{was}<div class="price-container"><div class="final-price inline-block" itemprop="offers" itemscope itemtype="http://schema.org/Offer"><span id="product-price-{i.number}" class="price-wrapper title-font font-medium text-2xl"><span class="price" x-html="getFormattedFinalPrice()">{i.shown}</span></span><meta itemprop="price" content="{i.price}"><meta itemprop="priceCurrency" content="{i.currency}"></div></div></div></div>{stock}</div>{m.near}<div class="flex mt-4 justify-end">{button if i.stock != OUT else ''}</div><div class="product-attributes"><table><tr><th class="label">SKU</th><td class="data">{i.sku}</td></tr></table></div></div></div></div></section>
{others(i, "Related Products", plain_card)}{m.below}</div></div></div>""", head=ld(i, m) + m.head, classes="catalog-product-view")  # fmt: skip


def bigcommerce(i: Item, m: More) -> str:
    def section(kind: str, attribute: str, text: str, label: str = "", *, saved: str = "") -> str:
        hidden = "" if text else ' style="display: none;"'
        return f'<div class="price-section price-section--withoutTax {kind}"{hidden}><span>{label}</span><span {attribute} class="price {saved}">{text}</span></div>'

    was = i.before
    stock_label = f'<div class="form-field form-field--stock{" u-hiddenVisually" if i.stock != IN else ""}"><label class="form-label form-label--alternate"><span class="productView-stock-message"><span data-product-stock>{12 if i.stock == IN else ""}</span> in stock</span></label></div>'
    alert = (
        '<div class="alertBox alertBox--error"><div class="alertBox-column alertBox-icon"></div><p class="alertBox-column alertBox-message"><span>Sold Out</span></p></div>'
        if i.stock == OUT
        else ""
    )
    saved = f'<div class="price-section price-section--saving price"{"" if was else " style=display:none"}><span class="price">(You save </span><span data-product-price-saved class="price price--saving">{i.part("0.2") if was else ""}</span><span class="price">)</span></div>'
    metas_ = (
        f'<meta property="product:price:amount" content="{m.markup.get("price", i.price)}"><meta property="product:price:currency" content="{i.currency}"><meta property="og:type" content="product"><meta property="og:availability" content="{({IN: "instock", OUT: "oos", BACK: "preorder"})[i.stock]}">'
        if m.has_markup
        else ""
    )
    return page(i, f"""<div class="body" data-currency-code="{i.currency}"><div class="container"><div><div class="productView" data-event-type="product" data-entity-id="{i.number}" data-name="{escape(i.title)}" data-product-brand="{i.brand}" data-product-price="
            {i.price}
" data-product-variant="single-product-option"><section class="productView-images"><figure class="productView-image"><img src="/1.jpg"></figure></section><section class="productView-details product-data"><div class="productView-product"><h1 class="productView-title">{escape(i.title)}</h1><h2 class="productView-brand"><a href="/b"><span>{i.brand}</span></a></h2><div class="productView-price">
{section("rrp-price--withoutTax", "data-product-rrp-price-without-tax", "", "MSRP:", saved="price--rrp")}{section("non-sale-price--withoutTax", "data-product-non-sale-price-without-tax", was, "Was:", saved="price--non-sale")}{section("price--withoutTax", "data-product-price-without-tax", i.shown, "Now:" if was else "")}{saved}</div>{m.near}
<div class="productView-rating"><a href="#product-reviews" id="productReview_link">(132 reviews)</a><a href="#write_review" class="productView-reviewLink" role="button">Write a Review</a></div><dl class="productView-info"><dt class="productView-info-name sku-label">SKU:</dt><dd class="productView-info-value" data-product-sku>{i.sku}</dd><dt class="productView-info-name upc-label" style="display: none;">UPC:</dt><dd class="productView-info-value" data-product-upc></dd><dt class="productView-info-name">Condition:</dt><dd class="productView-info-value">New</dd><dt class="productView-info-name">Shipping:</dt><dd class="productView-info-value">Calculated at Checkout</dd></dl></div></section>
<section class="productView-details product-options"><div class="productView-options"><form class="form" method="post" action="/cart.php" enctype="multipart/form-data" data-cart-item-add><input type="hidden" name="action" value="add"><input type="hidden" name="product_id" value="{i.number}"><div data-product-option-change style="display:none;"></div>{stock_label}<div id="add-to-cart-wrapper" class="add-to-cart-wrapper"{' style="display: none"' if i.stock == OUT else ''}>{alert}<div class="form-field form-field--increments"><label class="form-label" for="qty[]">Quantity:</label><input name="qty[]" value="1"></div><div class="alertBox alertBox--error productAttributes-message" style="display:none"><p class="alertBox-message"></p></div><div class="add-to-cart-buttons"><div class="form-action"><input id="form-action-addToCart" data-wait-message="Adding to cart…" class="button button--primary" type="submit" value="{'Pre-Order Now' if i.stock == BACK else 'Add to Cart'}"></div></div></div></form></div></section><article class="productView-description"><div class="tabs-contents"><p>Good.</p></div></article></div>
{others(i, "Related Products", lambda t, p: f'<article class="card" data-product-id="3"><h4 class="card-title"><a href="/p">{t}</a></h4><div class="card-text" data-test-info-type="price"><span data-product-price-without-tax class="price price--withoutTax">{p}</span></div><a href="/cart.php?action=add" class="button button--small card-figcaption-button">Add to Cart</a></article>')}{m.below}</div></div></div><script>var BCData = {json.dumps({"product_attributes": {"sku": i.sku, "instock": i.stock == IN, "price": {"without_tax": {"formatted": i.shown, "value": i.price}}}})};</script>""",
                head=metas_ + ld(i, m, image="https://cdn.example/i.jpg") + m.head)  # fmt: skip


def prestashop(i: Item, m: More) -> str:
    off = f'<div class="product-discount"><span class="regular-price">{i.before}</span></div>' if i.was else ""
    saved = '<span class="discount discount-percentage">Économisez 20%</span>' if i.was else ""
    message = {
        IN: '<i class="material-icons rtl-no-flip product-available">&#xE5CA;</i> En stock',
        OUT: '<i class="material-icons product-unavailable">&#xE14B;</i> Rupture de stock',
        BACK: '<i class="material-icons product-unavailable">&#xE14B;</i> Sur commande',
    }[i.stock]
    return page(i, f"""<section id="main"><meta content="/x"><div class="row product-container js-product-container"><div class="col-md-6"><section class="page-content" id="content2"><ul class="product-flags js-product-flags">{'<li class="product-flag discount">-20%</li>' if i.was else ''}</ul><div class="product-cover"><img src="/1.jpg"></div></section></div><div class="col-md-6"><h1 class="h1">{escape(i.title)}</h1><div class="product-prices js-product-prices">{off}
<div class="product-price h5 {'has-discount' if i.was else ''}"><div class="current-price"><span class='current-price-value' content="{i.price}">
{i.shown}
</span>{saved}</div></div><div class="tax-shipping-delivery-label">TTC <span class="delivery-information">Livraison : 2 à 3 jours</span></div></div>{m.near}<div class="product-information"><div class="product-description"><p>Très bien.</p></div><div class="product-actions js-product-actions"><form action="/panier" method="post" id="add-to-cart-or-refresh"><input type="hidden" name="token" value="ab12"><input type="hidden" name="id_product" value="{i.number}" id="product_page_product_id"><div class="product-variants js-product-variants"></div><section class="product-discounts js-product-discounts"></section>
<div class="product-add-to-cart js-product-add-to-cart"><span class="control-label">Quantité</span><div class="product-quantity clearfix"><div class="qty"><input type="number" name="qty" id="quantity_wanted" value="1"></div><div class="add"><button class="btn btn-primary add-to-cart" data-button-action="add-to-cart" type="submit" {'disabled' if i.stock == OUT else ''}><i class="material-icons shopping-cart">&#xE547;</i> Ajouter au panier</button></div></div><span id="product-availability" class="js-product-availability">{message}</span><p class="product-minimal-quantity js-product-minimal-quantity"></p></div></form></div>
<div class="blockreassurance_product"><p>Paiement sécurisé. Livraison offerte dès {i.part('3')}</p></div><div class="tabs"><div class="tab-content"><div class="tab-pane" id="product-details" data-product='{json.dumps({"id_product": i.number, "price_amount": float(i.price), "quantity": 5})}'><div class="product-reference"><label class="label">Référence </label><span>{i.sku}</span></div>{'<div class=product-quantities><label class=label>En stock</label><span data-stock=5>5 Produits</span></div>' if i.stock == IN else ''}</div></div></div></div></div></div>
<section class="featured-products clearfix mt-3"><h2>16 autres produits dans la même catégorie :</h2><div class="products row">{''.join(f'<div class="js-product product"><article class="product-miniature js-product-miniature"><h3 class="h3 product-title"><a href="/p">Objet {n}</a></h3><div class="product-price-and-shipping"><span class="price" aria-label="Prix">{i.part(n)}</span></div></article></div>' for n in ("0.5", "2"))}</div></section>{m.below}</section>""",
                head=metas(i, m).replace("</head>", "") + f'<meta property="product:pretax_price:amount" content="{i.share("0.8333")}">' + ld(i, m, mpn=i.sku) + m.head, lang="fr", classes="product-available-for-order", main="div")  # fmt: skip


def shopware(i: Item, m: More) -> str:
    was = (
        f'<span class="list-price-badge">%</span><span class="product-detail-list-price-wrapper"> <span class="list-price-price">{i.before}*</span> <span class="list-price-percentage">(20.01% gespart)</span></span>'
        if i.was
        else ""
    )
    stock = {
        IN: "<p class='delivery-information delivery-available'><span class='delivery-status-indicator bg-success'></span> Sofort verfügbar, Lieferzeit: 2-5 Tage</p>",
        OUT: "<p class='delivery-information delivery-soldout'><span class='delivery-status-indicator bg-danger'></span> Nicht mehr verfügbar</p>",
        BACK: "<p class='delivery-information delivery-preorder'><span class='delivery-status-indicator bg-warning'></span> Vorbestellbar</p>",
    }[i.stock]
    form = (
        f'<form id="productDetailPageBuyProductForm" action="/checkout/line-item/add" method="post" class="buy-widget" data-add-to-cart="true"><div class="row g-2 buy-widget-container"><div class="col-4"><div class="quantity-selector-group"><input type="number" value="1"></div></div><div class="col-8"><div class="d-grid"><button class="btn btn-primary btn-lg btn-buy" title="In den Warenkorb" aria-label="In den Warenkorb">In den Warenkorb</button></div></div></div><input type="hidden" name="redirectTo" value="frontend.detail.page"><input type="hidden" name="product-name" value="{escape(i.title)}"></form>'
        if i.stock != OUT
        else ""
    )
    offers = 'itemprop="offers" itemscope itemtype="https://schema.org/Offer"' if m.has_markup else ""
    return page(i, f"""<div class="container-main"><div class="product-detail" itemscope itemtype="https://schema.org/Product"><div class="product-detail-content"><div class="row product-detail-headline"><div class="col product-detail-name-container"><h1 class="product-detail-name" itemprop="name">{escape(i.title)}</h1></div></div><div class="row product-detail-main"><div class="col-lg-7 product-detail-media"><img itemprop="image" src="/1.jpg"></div><div class="col-lg-5 product-detail-buy"><meta itemprop="releaseDate" content="2025-01-01"><div itemprop="brand" itemtype="https://schema.org/Brand" itemscope><meta itemprop="name" content="{i.brand}"></div>
<div {offers}><meta itemprop="url" content="/x"><meta itemprop="priceCurrency" content="{i.currency}"><div class="product-detail-price-container"><meta itemprop="price" content="{m.markup.get('price', i.price)}"><p class="product-detail-price{' with-list-price' if i.was else ''}">{i.shown}*{was}</p><div class="product-detail-price-unit"><span class="price-unit-label">Inhalt:</span> <span class="price-unit-content">0.5 Kilogramm</span> <span class="price-unit-reference-content">({i.part('2')}* / 1 Kilogramm)</span></div></div><div class="product-detail-tax-container"><p class="product-detail-tax"><a class="product-detail-tax-link" href="/v">Preise inkl. MwSt. zzgl. Versandkosten</a></p></div>{m.near}<div class="product-detail-delivery-information"><link itemprop="availability" href="https://schema.org/{'OutOfStock' if i.stock == OUT else 'PreOrder' if i.stock == BACK else 'InStock'}">{stock}</div><div class="product-detail-form-container">{form}</div></div>
<div class="product-detail-ordernumber-container"><span class="product-detail-ordernumber-label">Produktnummer:</span><span class="product-detail-ordernumber" itemprop="sku">{i.sku}</span></div></div></div></div><div class="product-detail-tabs"><p>Beschreibung</p></div><div class="product-detail-cross-selling"><div class="cms-element-product-slider"><div class="product-slider-item"><div class="card product-box box-standard"><a href="/p" class="product-name">Anderes</a><div class="product-price-info"><p class="product-price-wrapper"><span class="product-price">{i.part('1.4')}*</span></p></div><button class="btn btn-buy">In den Warenkorb</button></div></div></div></div>{m.below}</div></div>""", lang="de-DE", head=metas(i, m) + m.head, classes="is-ctl-product is-act-index")  # fmt: skip


def opencart(i: Item, m: More) -> str:
    price = (
        f'<li><span style="text-decoration: line-through;">{i.before}</span></li><li><h2>{i.shown}</h2></li>'
        if i.was
        else f"<li><h2>{i.shown}</h2></li>"
    )
    return page(i, f"""<div id="product-product" class="container"><div class="row"><div id="content3" class="col-sm-12"><div class="row"><div class="col-sm-8"><ul class="thumbnails"><li><a class="thumbnail"><img src="/1.jpg"></a></li></ul><ul class="nav nav-tabs"><li class="active"><a href="#tab-description">Description</a></li></ul><div class="tab-content"><div class="tab-pane active" id="tab-description"><p>Good.</p></div></div></div><div class="col-sm-4"><div class="btn-group"><button type="button" class="btn btn-default" title="Add to Wish List"><i class="fa fa-heart"></i></button></div><h1>{escape(i.title)}</h1><ul class="list-unstyled"><li>Brand: <a href="/m">{i.brand}</a></li><li>Product Code: {i.sku}</li><li>Reward Points: 200</li><li>Availability: {({IN: 'In Stock', OUT: 'Out Of Stock', BACK: 'Pre-Order'})[i.stock]}</li></ul>
<ul class="list-unstyled">{price}<li>Ex Tax: {i.part('0.8')}</li><li>Price in reward points: 400</li><li><hr></li><li>10 or more {i.part('0.9')}</li></ul>{m.near}<div id="product"><div class="form-group"><label class="control-label" for="input-quantity">Qty</label><input type="text" name="quantity" value="1" size="2"><input type="hidden" name="product_id" value="{i.number}"><br><button type="button" id="button-cart" data-loading-text="Loading..." class="btn btn-primary btn-lg btn-block">Add to Cart</button></div></div></div></div>
<h3>Related Products</h3><div class="row">{''.join(f'<div class="col-xs-6 col-sm-3"><div class="product-thumb transition"><div class="caption"><h4><a href="/p">Thing {n}</a></h4><p class="price">{i.part(n)} <span class="price-tax">Ex Tax: {i.part(n)}</span></p></div><div class="button-group"><button type="button"><span>Add to Cart</span></button></div></div></div>' for n in ("0.5", "2"))}</div>{m.below}</div></div></div>""", head=ld(i, m) + m.head, classes="product-product-30")  # fmt: skip
