"""More themes: enterprise platforms, builders, and shops with pages of their own in several countries."""

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


def salesforce(i: Item, m: More) -> str:
    price = (
        f'<del><span class="strike-through list"><span class="value" content="{i.was}"><span class="sr-only">Price reduced from</span>{i.before}<span class="sr-only">to</span></span></span></del><span class="sales"><span class="value" content="{i.price}">{i.shown}</span></span>'
        if i.was
        else f'<span class="sales"><span class="value" content="{i.price}">{i.shown}</span></span>'
    )
    stock = {IN: "In Stock", OUT: "This item is currently not available", BACK: "Pre-Order"}[i.stock]
    return page(i, f"""<div class="container product-detail product-wrapper" data-pid="{i.sku}"><div class="row"><div class="col-12"><h1 class="product-name hidden-sm-down">{escape(i.title)}</h1></div></div><div class="row"><div class="primary-images col-12"><img src="/1.jpg"></div><div class="col-12 col-sm-6"><div class="row"><div class="col"><h2 class="h1 product-name hidden-md-up">{escape(i.title)}</h2></div></div><div class="product-number-rating clearfix"><div class="product-number pull-left">Item No. <span class="product-id">{i.sku}</span></div></div>
<div class="attributes"><div class="row" data-attr="size"><div class="col-12"><div class="attribute"><div class="size"><span class="size non-input-label">Select Size</span><select class="custom-select form-control select-size"><option value="">Select Size</option><option value="m">M</option></select></div></div></div></div><div class="row cart-and-ipay availability product-availability" data-ready-to-order="{'false' if i.stock == OUT else 'true'}" data-available="{'false' if i.stock == OUT else 'true'}"><div class="col-12"><span class="availability non-input-label">Availability:</span><ul class="list-unstyled availability-msg"><li><div>{stock}</div></li></ul></div></div><div class="prices-add-to-cart-actions"><div class="row"><div class="col-12"><div class="prices"><div class="price"><span>{price}</span></div></div></div></div>{m.near}<div class="cart-and-ipay"><input type="hidden" class="add-to-cart-url" value="/on/x"><button class="add-to-cart btn btn-primary" data-toggle="modal" data-target="#chooseBonusProductModal" data-pid="{i.sku}" {'disabled' if i.stock == OUT else ''}><i class="fa fa-shopping-bag"></i>Add to Cart</button></div></div></div></div></div>
<div class="description-and-detail"><h2>Details</h2><p>Good.</p></div><div class="recommendations"><h2>You might also like</h2>{''.join(f'<div class="product" data-pid="o{n}"><div class="product-tile"><a class="link" href="/p">Thing {n}</a><div class="price"><span class="sales"><span class="value" content="{i.share(n)}">{i.part(n)}</span></span></div></div></div>' for n in ("0.5", "2"))}</div>{m.below}</div>""", head=ld(i, m, mpn=i.sku) + m.head)  # fmt: skip


def hybris(i: Item, m: More) -> str:
    was = f'<span class="price-old">{i.before}</span>' if i.was else ""
    return page(i, f"""<div class="yCmsContentSlot product-detail-section"><div class="product-details page-title"><div class="name">{escape(i.title)}<span class="sku">ID</span><span class="code">{i.sku}</span></div></div><div class="row"><div class="col-sm-6"><div class="image-gallery"><img src="/1.jpg"></div></div><div class="col-sm-6"><div class="product-main-info"><h1 class="name">{escape(i.title)}</h1><div class="product-details"><p class="price">{was}{i.shown}</p>{m.near}<div class="description">Good.</div></div><div class="addtocart-component"><div class="qty-selector input-group"><input type="text" value="1"></div><div class="stock-wrapper clearfix">{({IN: '13 In Stock', OUT: 'Out of Stock', BACK: 'Pre-order'})[i.stock]}</div><div class="actions"><form id="addToCartForm" class="add_to_cart_form" action="/cart/add" method="post"><input type="hidden" name="productCodePost" value="{i.number}"><button id="addToCartButton" type="{'button' if i.stock == OUT else 'submit'}" class="btn btn-primary btn-block js-add-to-cart" {'disabled="disabled"' if i.stock == OUT else ''}>{'Out of stock' if i.stock == OUT else 'Add to cart'}</button></form></div></div></div></div></div></div>
<div class="carousel__component"><div class="carousel__component--headline">Accessories</div><div class="carousel__component--carousel"><div class="carousel__item"><a href="/p"><div class="carousel__item--name">Case</div><div class="carousel__item--price">{i.part('0.2')}</div></a></div></div></div>{m.below}""", head=ld(i, m) + m.head, classes="page-productDetails")  # fmt: skip


def squarespace(i: Item, m: More) -> str:
    price = (
        f'<span class="visually-hidden v6-visually-hidden">Sale Price:</span>{i.shown} <span class="original-price"><span class="visually-hidden">Original Price:</span>{i.before}</span>'
        if i.was
        else i.shown
    )
    mark = '<div class="product-mark sold-out">sold out</div>' if i.stock == OUT else ""
    button = (
        '<div class="sqs-add-to-cart-button-wrapper"><div class="sqs-add-to-cart-button sqs-suppress-edit-mode sqs-editable-button" role="button" tabindex="0" data-item-id="5f"><div class="sqs-add-to-cart-button-inner">Add To Cart</div></div></div>'
        if i.stock != OUT
        else ""
    )
    return page(i, f"""<article class="ProductItem hentry" data-item-id="5f"><section class="ProductItem-summary"><section class="ProductItem-gallery"><img src="/1.jpg"></section><section class="ProductItem-details"><h1 class="ProductItem-details-title">{escape(i.title)}</h1><div class="ProductItem-details-checkout"><div class="ProductItem-product-price"><div class="product-price{' on-sale' if i.was else ''}">{price}</div></div>{mark}{m.near}<div class="ProductItem-details-excerpt"><p>Good.</p></div><div class="product-quantity-input"><div class="quantity-label">Quantity:</div><input aria-label="Quantity" value="1"></div>{button}</div></section></section><section class="ProductItem-relatedProducts"><h2 class="ProductItem-relatedProducts-title">You Might Also Like</h2><div class="list-grid"><a href="/p">Thing</a><div class="product-price">{i.part('1.6')}</div></div></section></article>{m.below}""",
                head=f'<meta property="product:price:amount" content="{m.markup.get("price", i.price)}"><meta property="product:price:currency" content="{i.currency}"><meta property="product:availability" content="{"oos" if i.stock == OUT else "instock"}">{ld(i, m)}{m.head}' if m.has_markup else m.head)  # fmt: skip


def wix(i: Item, m: More) -> str:
    price = (
        f'<span class="sr-only">Regular Price</span><span data-hook="formatted-secondary-price" data-wix-original-price="{i.before}" style="text-decoration:line-through">{i.before}</span><span class="sr-only">Sale Price</span><span data-hook="formatted-primary-price" data-wix-price="{i.shown}">{i.shown}</span>'
        if i.was
        else f'<span data-hook="formatted-primary-price" data-wix-price="{i.shown}">{i.shown}</span><span class="sr-only">Price</span>'
    )
    button = f'<button data-hook="add-to-cart" aria-disabled="{"true" if i.stock == OUT else "false"}" {"disabled" if i.stock == OUT else ""} class="buttonnext add-to-cart-button" type="button"><span class="buttonnext__content">{({IN: "Add to Cart", OUT: "Out of Stock", BACK: "Pre-Order"})[i.stock]}</span></button>'
    return page(i, f"""<div id="TPAMultiSection"><article class="s__3GvPro" data-hook="product-page"><div data-hook="product-gallery"><img src="/1.jpg"></div><section class="_1QgR2"><h1 data-hook="product-title" class="_2qrJF">{escape(i.title)}</h1><div data-hook="sku" class="_1rwRc">SKU: {i.sku}</div><div class="_26qxh" data-hook="product-price-wrapper">{price}</div>{m.near}<div data-hook="product-quantity"><label>Quantity</label><input type="number" value="1"></div><div data-hook="actions">{button}<button data-hook="buy-now-button" {"disabled" if i.stock == OUT else ""}>Buy Now</button></div><section data-hook="info-section"><h2>PRODUCT INFO</h2><p>Good.</p></section></section></article><div data-hook="related-products-root"><h2>Related Products</h2><div data-hook="product-item-root"><h3 data-hook="product-item-name">Thing</h3><span data-hook="product-item-price-to-pay" data-wix-price="{i.part('2')}">{i.part('2')}</span></div></div></div>{m.below}""",
                head=(f'<script type="application/ld+json">{json.dumps({"@context": "https://schema.org/", "@type": "Product", "name": i.title, "description": "d", "sku": i.sku, "image": [{"@type": "ImageObject", "contentUrl": "https://static.example/1.jpg"}], "Offers": {"@type": "Offer", "url": "/x", "priceCurrency": i.currency, "price": m.markup.get("price", i.price), "Availability": "https://schema.org/" + ("OutOfStock" if i.stock == OUT else "InStock")}})}</script><meta property="product:price:amount" content="{m.markup.get("price", i.price)}"><meta property="product:price:currency" content="{i.currency}"><meta property="product:availability" content="{"OutOfStock" if i.stock == OUT else "InStock"}">' if m.has_markup else "") + m.head)  # fmt: skip


def nopcommerce(i: Item, m: More) -> str:
    old = f'<div class="old-product-price"><span>Old price:</span><span>{i.before}</span></div>' if i.was else ""
    label = '<span class="price-label">Price:</span>' if i.was else ""
    return page(i, f"""<div class="page product-details-page"><div class="page-body"><form method="post" id="product-details-form" action="/x"><div data-productid="{i.number}"><div class="product-essential"><div class="gallery"><img src="/1.jpg"></div><div class="overview"><div class="product-name"><h1>{escape(i.title)}</h1></div><div class="short-description">Good.</div><div class="availability"><div class="stock"><span class="label">Availability:</span><span class="value" id="stock-availability-value-{i.number}">{({IN: 'In stock', OUT: 'Out of stock', BACK: 'Available for pre-order'})[i.stock]}</span></div></div><div class="additional-details"><div class="sku"><span class="label">SKU:</span><span class="value" id="sku-{i.number}">{i.sku}</span></div></div><div class="product-reviews-overview"><a href="#r">132 review(s)</a></div><div class="prices">{old}<div class="product-price">{label}<span id="price-value-{i.number}" class="price-value-{i.number}">{i.shown}</span></div></div>{m.near}
<div class="add-to-cart"><div class="add-to-cart-panel"><label class="qty-label">Qty:</label><input id="product_enteredQuantity_{i.number}" class="qty-input" type="text" value="1"><button type="button" id="add-to-cart-button-{i.number}" class="button-1 add-to-cart-button" {'disabled' if i.stock == OUT else ''}>{'Pre-order' if i.stock == BACK else 'Add to cart'}</button></div></div><div class="overview-buttons"><button type="button" class="button-2 add-to-compare-list-button">Add to compare list</button></div></div></div><div class="product-collateral"></div><div class="also-purchased-products-grid product-grid"><div class="title"><strong>Customers who bought this item also bought</strong></div><div class="item-grid"><div class="product-item"><h2 class="product-title"><a href="/p">Thing</a></h2><div class="prices"><span class="price actual-price">{i.part('1.2')}</span></div><button type="button" class="button-2 product-box-add-to-cart-button">Add to cart</button></div></div></div></div></form></div></div>{m.below}""", head=ld(i, m) + m.head)  # fmt: skip


def ecwid(i: Item, m: More) -> str:
    was = (
        f'<div class="details-product-price-compare"><span class="details-product-price-compare__label">Before </span><span class="details-product-price-compare__value">{i.before}</span></div>'
        if i.was
        else ""
    )
    offers = 'itemtype="http://schema.org/Offer" itemscope itemprop="offers"' if m.has_markup else ""
    stock = {
        IN: '<div class="product-details-module__title ec-header-h6 details-product-purchase__place"><span>In stock</span></div>',
        OUT: '<div class="details-product-purchase__place"><span>Sold out</span></div>',
        BACK: '<div class="details-product-purchase__place"><span>Pre-order</span></div>',
    }[i.stock]
    button = (
        '<div class="details-product-purchase__controls"><div class="form-control form-control--button"><button class="form-control__button" type="button"><span class="form-control__button-text">Add to Bag</span></button></div></div>'
        if i.stock != OUT
        else ""
    )
    return page(i, f"""<div class="ecwid-productBrowser ecwid-productBrowser-ProductPage"><div class="product-details" itemtype="http://schema.org/Product" itemscope><div class="product-details__gallery"><img itemprop="image" src="/1.jpg"></div><div class="product-details__sidebar"><h1 class="product-details__product-title ec-header-h3" itemprop="name">{escape(i.title)}</h1><div class="product-details__product-sku ec-text-muted" itemprop="sku">SKU&nbsp;{i.sku}</div><div class="product-details__product-price ec-price-item notranslate" {offers}><div class="product-details__product-price"><span class="details-product-price__value ec-price-item notranslate" itemprop="price" content="{m.markup.get('price', i.price)}">{i.shown}</span><span itemprop="priceCurrency" content="{i.currency}"></span><link itemprop="availability" href="http://schema.org/{'OutOfStock' if i.stock == OUT else 'PreOrder' if i.stock == BACK else 'InStock'}"></div></div>{was}{m.near}{stock}{button}</div></div></div>{others(i, 'You may also like', plain_card)}{m.below}""", head=m.head)  # fmt: skip


def lightspeed(i: Item, m: More) -> str:
    was = f'<span class="price-old">{i.before}</span>' if i.was else ""
    stock = {
        IN: '<td><span class="in-stock"><i class="fa fa-check"></i> In stock</span> <span>(7)</span></td>',
        OUT: '<td><span class="out-of-stock">Out of stock</span></td>',
        BACK: '<td><span class="backorder">Available on backorder</span></td>',
    }[i.stock]
    button = (
        '<a href="javascript:;" onclick="$(\'#product_configure_form\').submit();" class="btn glyphicon glyphicon-shopping-cart" title="Add to cart"><span>Add to cart</span></a>'
        if i.stock != OUT
        else ""
    )
    return page(i, f"""<div class="container content"><div class="page-title row"><div class="col-sm-6"><h1 class="product-page">{escape(i.title)}</h1></div></div><div class="product-wrap row"><div class="product-img col-md-4"><img src="/1.jpg"></div><div class="product-info col-md-8"><form action="/cart/add/{i.number}/" id="product_configure_form" method="post"><div class="product-price row"><div class="price-wrap col-xs-5"><span class="price">{was}<span style="line-height: 30px;">{i.shown}</span></span><small class="price-tax">Incl. tax</small></div></div>{m.near}<div class="product-description row"><p>Good.</p></div><table class="details"><tr class="details-row"><td>Article number:</td><td>{i.sku}</td></tr><tr><td>Availability:</td>{stock}</tr></table><div class="cart"><input type="text" name="quantity" value="1">{button}</div></form></div></div></div>{others(i, 'Related products', plain_card)}{m.below}""",
                head=ld(i, m) + metas(i, m) + m.head)  # fmt: skip


def retailer_next(i: Item, m: More) -> str:
    """A big retailer with a page made by scripts: split amounts with a text for screen readers, seller and delivery boxes, a bar that sticks."""
    whole, _, cents = i.price.partition(".")
    was = (
        f'<div class="mt1"><span class="w_iUH7">Was {i.before}</span><span aria-hidden="true" class="strike f6">{i.before}</span></div>'
        if i.was
        else ""
    )
    button = (
        '<button type="button" disabled>Notify me when back in stock</button><p>Out of stock</p>'
        if i.stock == OUT
        else '<button type="button" data-automation-id="atc" class="w_hhLG">Add to cart</button>'
    )
    state = {
        "props": {
            "pageProps": {
                "initialData": {
                    "product": {
                        "name": i.title,
                        "priceInfo": {"currentPrice": {"price": float(i.price)}, "wasPrice": i.was or None},
                    }
                }
            }
        }
    }
    return page(i, f"""<div id="__next"><div class="flex"><section aria-label="media"><img src="/1.jpg"></section><section class="w_FvVX"><a href="/b">{i.brand}</a><h1 id="main-title" class="lh-copy dark-gray mv1 f3">{escape(i.title)}</h1><div class="rating"><span class="w_iUH7">4.6 stars out of 132 reviews</span><span>(4.6)</span></div></section><div data-testid="buy-box"><div data-testid="price-wrap"><span itemprop="price" data-seo-id="hero-price" aria-hidden="false" class="b f1">{'Now ' if i.was else ''}<span class="sr-only">{i.shown}</span><span aria-hidden="true"><span class="sym">$</span><span class="dollars">{int(whole):,}</span><span class="cents">{cents}</span></span></span>{was}<div class="unit">2.5 ¢/oz</div></div>{m.near}<div class="fulfillment"><div><span>Shipping</span><span>Arrives Jun 12</span><span>Free</span></div><div><span>Pickup</span><span>Check nearby</span></div></div>{button}<div class="financing">{i.part('0.09')}/mo with 12 month financing. <button>Learn how</button></div><div>Sold and shipped by Harbor</div><div>More seller options (3) starting from {i.part('1.05')}</div></div></div>
<section><h2>Similar items you might like</h2><div><a href="/p">Thing</a><div><span class="w_iUH7">current price {i.part('0.7')}</span></div><button>Add</button></div></section>{m.below}<div class="sticky-atc-bar"><span>{escape(i.title)}</span><span>{i.shown}</span></div></div><script id="__NEXT_DATA__" type="application/json">{json.dumps(state)}</script>""", head=ld(i, m) + m.head)  # fmt: skip


def electronics(i: Item, m: More) -> str:
    """A retailer of electronics: hero price, open box, memberships, protection plans and financing around it."""
    saved = (
        f'<div class="pricing-price__savings" aria-label="Save"><span>Save {i.part("0.2")}</span></div><div class="pricing-price__regular-price"><span>Was {i.before}</span></div>'
        if i.was
        else ""
    )
    button = (
        '<button class="c-button c-button-disabled add-to-cart-button" disabled data-button-state="SOLD_OUT">Sold Out</button>'
        if i.stock == OUT
        else f'<button class="c-button c-button-primary add-to-cart-button" data-button-state="{"PRE_ORDER" if i.stock == BACK else "ADD_TO_CART"}">{"Pre-Order" if i.stock == BACK else "Add to Cart"}</button>'
    )
    return page(i, f"""<div class="shop-product"><div class="sku-title"><h1 class="heading-5 v-fw-regular">{escape(i.title)}</h1></div><div class="title-data"><div class="model product-data"><span class="product-data-label">Model:</span><span class="product-data-value">{i.number}X</span></div><div class="sku product-data"><span class="product-data-label">SKU:</span><span class="product-data-value">{i.sku}</span></div></div><div class="row"><div class="col"><img src="/1.jpg"></div><div class="col right"><div class="pricing-price"><div class="priceView-price"><div class="priceView-hero-price priceView-customer-price"><span aria-hidden="true">{i.shown}</span><span class="sr-only">Your price for this item is {i.shown}</span></div>{saved}</div></div><div class="payment-options">or <strong>{i.part('0.042')}/mo.</strong> suggested payments with 24-Month Financing</div>{m.near}<div class="plus-membership"><p>My Plus members save an extra {i.part('0.05')}</p></div><div class="open-box"><span>Open-Box: from <strong>{i.part('0.8')}</strong></span></div><div class="protection"><p>Protect your product</p><label><input type="radio"> 2-Year Standard Protection {i.part('0.15')} <span>About {i.part('0.006')}/mo.</span></label></div><div class="fulfillment"><p>Pickup: Ready within 1 hour</p></div><div class="fulfillment-add-to-cart-button">{button}</div></div></div><div class="frequently-bought"><h2>Frequently bought together</h2><p>Total for 3 items: {i.part('1.9')}</p><button>Add all to cart</button></div></div>{REVIEWS}{m.below}""", head=ld(i, m, shape="list") + m.head)  # fmt: skip


WORDS = {
    "de": ("In den Warenkorb", "Auf Lager", "Derzeit nicht verfügbar", "Vorbestellbar", "Das könnte Ihnen auch gefallen", "Art.-Nr.:", "inkl. MwSt., zzgl. Versand", "statt", "Versandkostenfrei ab"),
    "fr": ("Ajouter au panier", "En stock", "Rupture de stock", "En précommande", "Vous aimerez aussi", "Réf. :", "TTC, hors livraison", "au lieu de", "Livraison offerte dès"),
    "es": ("Añadir al carrito", "Disponible", "Agotado", "En preventa", "También te puede interesar", "Referencia:", "IVA incluido", "antes", "Envío gratis desde"),
    "it": ("Aggiungi al carrello", "Disponibile", "Non disponibile", "In preordine", "Potrebbe interessarti", "Codice:", "IVA inclusa", "anziché", "Spedizione gratuita da"),
    "nl": ("In winkelwagen", "Op voorraad", "Uitverkocht", "In nabestelling", "Misschien vind je dit ook leuk", "Artikelnummer:", "Incl. btw", "van", "Gratis verzending vanaf"),
    "pl": ("Do koszyka", "Dostępny", "Produkt niedostępny", "Na zamówienie", "Zobacz również", "Kod produktu:", "cena brutto", "cena regularna:", "Darmowa dostawa od"),
    "sv": ("Lägg i varukorgen", "I lager", "Slut i lager", "Förboka", "Andra köpte även", "Artikelnummer:", "Inkl. moms", "Ord. pris", "Fri frakt över"),
    "da": ("Læg i kurv", "På lager", "Udsolgt", "Forudbestil", "Andre købte også", "Varenummer:", "Inkl. moms", "Før", "Fri fragt over"),
    "cs": ("Do košíku", "Skladem", "Vyprodáno", "Předobjednávka", "Podobné produkty", "Kód:", "s DPH", "Původní cena", "Doprava zdarma nad"),
    "pt": ("Adicionar ao carrinho", "Disponível", "Esgotado", "Pré-venda", "Produtos relacionados", "Referência:", "", "De", "Frete grátis acima de"),
    "hu": ("Kosárba", "Raktáron", "Nincs készleten", "Előrendelhető", "Hasonló termékek", "Cikkszám:", "ÁFÁ-val", "helyett", "Ingyenes szállítás"),
    "en": ("Add to basket", "In stock", "Out of stock", "Available to pre-order", "You may also like", "Product code:", "inc VAT", "Was", "Free delivery over"),
}  # fmt: skip


def european(lang: str):
    """An own system of a shop in Europe: tax note, delivery threshold, price per unit of measure, payment by installments."""

    def make(i: Item, m: More) -> str:
        buy, there, gone, later, more, code, tax, before, free = WORDS[lang]
        was = f'<div class="price-before"><span class="label">{before}</span> <s>{i.before}</s></div>' if i.was else ""
        stock = {IN: there, OUT: gone, BACK: later}[i.stock]
        button = (
            f'<button type="submit" class="btn btn-cart" name="buy"><span>{buy}</span></button>'
            if i.stock != OUT
            else ""
        )
        return page(i, f"""<div class="product-page"><div class="product-gallery"><img src="/1.jpg"></div><div class="product-box"><h1 class="product-box__name">{escape(i.title)}</h1><div class="product-box__code"><span>{code}</span> <span>{i.sku}</span></div><div class="product-box__price">{was}<div class="price-now">{i.shown}</div><div class="tax-note">{tax}</div></div>{m.near}<div class="product-box__stock"><span class="dot"></span> {stock}</div><form action="/cart/add" method="post"><input type="hidden" name="product_id" value="{i.number}"><input type="number" name="amount" value="1">{button}</form><ul class="usp"><li>{free} {i.part('4')}</li><li>Klarna</li></ul></div></div>{others(i, more, lambda t, p: f'<div class="tile"><a href="/p">{t}</a><div class="price-now">{p}</div></div>')}{m.below}""", lang=lang, head=ld(i, m) + metas(i, m) + m.head)  # fmt: skip

    make.__name__ = f"shop_{lang}"
    return make


def french_euro_cents(i: Item, m: More) -> str:
    """Amounts as "12€99", the sign between euros and cents."""
    whole, _, cents = i.price.partition(".")
    return page(i, f"""<div class="fiche"><div class="visuels"><img src="/1.jpg"></div><div class="infos"><h1>{escape(i.title)}</h1><p class="ref">Réf. {i.sku}</p><div class="fpPrice"><span itemprop="price" content="{i.price}" class="prix">{f"{int(whole):,}".replace(",", chr(0x202f))}€<sup>{cents}</sup></span></div>{m.near}<p class="dispo">{'En stock' if i.stock == IN else 'Rupture de stock'}</p>{'<button class="btn-panier">Ajouter au panier</button>' if i.stock != OUT else ''}</div></div>{others(i, 'Produits similaires', plain_card)}{m.below}""", lang="fr", head=ld(i, m) + m.head)  # fmt: skip


def british_vat(i: Item, m: More) -> str:
    """A shop for trade and public: the price with and without tax."""
    net = i.part("0.8333")
    return page(i, f"""<div class="pr"><div class="pr__img"><img src="/1.jpg"></div><div class="pr__info"><h1 class="pr__title">{escape(i.title)} <span class="pr__code">({i.sku})</span></h1><div class="pr__pricing"><div class="pr__price pr__price--inc" id="product_price"><span>{i.shown}</span><span class="pr__vat">Inc Vat</span></div><div class="pr__price pr__price--ex"><span>{net}</span><span class="pr__vat">Ex Vat</span></div></div>{m.near}<div class="pr__stock">{'In Stock' if i.stock == IN else 'Out of Stock'}</div>{'<button id="add_to_basket" class="btn btn--cta">Add to Basket</button>' if i.stock != OUT else ''}<p>Free delivery on orders over £50 ex VAT</p></div></div>{others(i, 'Customers also bought', plain_card)}{m.below}""", head=ld(i, m) + m.head, lang="en-GB")  # fmt: skip


def brazilian(i: Item, m: More) -> str:
    """VTEX: price by card in installments, and lower for immediate payment."""
    was = (
        f'<span class="vtex-product-price-1-x-listPrice"><span class="vtex-product-price-1-x-listPriceValue strike">{i.before}</span></span>'
        if i.was
        else ""
    )
    stock = (
        '<div class="vtex-store-components-3-x-availabilitySubscriber">Produto esgotado. Avise-me quando chegar</div>'
        if i.stock == OUT
        else '<button class="vtex-button bw1"><div class="vtex-button__label"><span class="vtex-add-to-cart-button-0-x-buttonText">Adicionar ao carrinho</span></div></button>'
    )
    return page(i, f"""<div class="vtex-store__template"><div class="vtex-flex-layout-0-x-flexRow"><div><img src="/1.jpg"></div><div class="vtex-flex-layout-0-x-flexCol--right"><h1 class="vtex-store-components-3-x-productNameContainer"><span class="vtex-store-components-3-x-productBrand">{escape(i.title)}</span></h1><span class="vtex-product-identifier-0-x-product-identifier">SKU: {i.sku}</span>{was}<span class="vtex-product-price-1-x-sellingPrice"><span class="vtex-product-price-1-x-sellingPriceValue"><span class="vtex-product-price-1-x-currencyContainer">{i.shown}</span></span></span><span class="vtex-product-price-1-x-installments">em até 10x de {i.part('0.1')} sem juros</span>{m.near}<p>{i.part('0.95')} no Pix</p>{stock}</div></div></div>{others(i, 'Produtos relacionados', plain_card)}{m.below}""", lang="pt-BR", head=ld(i, m) + m.head)  # fmt: skip


def japanese(i: Item, m: More) -> str:
    return page(i, f"""<div class="item-page"><div class="item-img"><img src="/1.jpg"></div><div class="item-detail"><h1 class="item-name">{escape(i.title)}</h1><p class="item-number">商品番号 {i.sku}</p><div class="price-area"><span class="price2">{i.shown}</span><span class="tax">(税込)</span></div>{m.near}<p class="stock-area">{'在庫あり' if i.stock == IN else '在庫なし'}</p>{'<button type="submit" class="cart-btn">カートに入れる</button>' if i.stock != OUT else '<p class="soldout">売り切れ</p>'}</div></div>{m.below}""", lang="ja", head=ld(i, m) + m.head)  # fmt: skip


def indian(i: Item, m: More) -> str:
    was = (
        f'<div class="mrp">M.R.P.: <span class="strike">{i.before}</span> <span class="off">20% off</span></div>'
        if i.was
        else ""
    )
    return page(i, f"""<div class="pdp-container"><div class="pdp-images"><img src="/1.jpg"></div><div class="pdp-details"><h1 class="pdp-title">{i.brand}</h1><h1 class="pdp-name">{escape(i.title)}</h1><div class="pdp-price-info"><p class="pdp-discount-container"><span class="pdp-price"><strong>{i.shown}</strong></span></p>{was}<p class="pdp-vatInfo">inclusive of all taxes</p></div>{m.near}<p class="stock">{'In Stock' if i.stock == IN else 'Currently unavailable'}</p><div class="pdp-action">{'<button class="pdp-add-to-bag">ADD TO BAG</button>' if i.stock != OUT else ''}</div><p>No cost EMI starts at {i.part('0.08')} per month</p><p class="supplier">Product Code: <span>{i.sku}</span></p></div></div>{others(i, 'Similar products', plain_card)}{m.below}""", lang="en-IN", head=ld(i, m) + m.head)  # fmt: skip


def no_availability(i: Item, m: More) -> str:
    """Structured data without availability, a text about stock without a class, and a button."""
    stock = {IN: "In stock. Ships within 24 hours", OUT: "Sold out", BACK: "Available on backorder"}[i.stock]
    button = (
        '<button type="submit" class="btn-primary">Add to cart</button>'
        if i.stock != OUT
        else '<button type="button" disabled>Sold out</button>'
    )
    return page(i, f"""<div class="detail"><img src="/1.jpg"><div class="info"><h1>{escape(i.title)}</h1><div class="amount">{i.shown}</div>{m.near}<p class="status">{stock}</p><form action="/cart" method="post"><input type="hidden" name="product" value="{i.number}">{button}</form><p>SKU: {i.sku}</p></div></div>{others(i, 'More for you', plain_card)}{m.below}""", head=ld(i, More(markup={**m.markup, "availability": None}, has_markup=m.has_markup)) + m.head)  # fmt: skip
