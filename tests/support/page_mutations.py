"""Changes to product pages that shops make, or that somebody could make, and what is true afterwards."""

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from lxml import html as lxml_html

from harvester.kernel.stock import Availability
from tests.support.shop_pages import OUT, Case


@dataclass(kw_only=True)
class Changed:
    """A page after a change; `price` is None where no price may be taken any more."""

    root: Any
    case: Case
    price: str | None
    currency: str
    stock: Availability | None

    @property
    def title(self) -> Any:
        return self.root.xpath("//h1")[0]

    def insert_after_title(self, markup: str) -> None:
        self.title.addnext(lxml_html.fragment_fromstring(markup))

    def price_texts(self) -> list[tuple[Any, str, str]]:
        """The places where the price is written, but for tables of quantities, as (element, "text" or "tail", text)."""
        found = []
        body = self.root.find("body")
        for element in body.iter():
            if not isinstance(element.tag, str) or element.tag in {"script", "style", "td"}:
                continue
            for where in ("text", "tail"):
                text = getattr(element, where)
                if text and self.case.goods.shown in text:
                    found.append((element, where, text))
        return found

    def replace_price(self, other: str) -> int:
        places = self.price_texts()
        for element, where, text in places:
            setattr(element, where, text.replace(self.case.goods.shown, other))
        return len(places)

    def scripts(self) -> list[Any]:
        return self.root.xpath("//script[@type='application/ld+json']")

    def other(self, share: str = "0.8") -> str:
        return self.case.goods.part(share)


def related_first(page: Changed) -> None:
    """Other products above the product."""
    body = page.root.find("body")
    body.insert(0, lxml_html.fragment_fromstring(
        f'<section class="highlights"><h2>You may also like</h2><div class="tile"><h3><a href="/p">Other thing 1</a></h3>'
        f'<span class="price">{page.other("0.5")}</span><button class="add-to-cart">Add to cart</button></div></section>'
    ))  # fmt: skip


def related_without_heading(page: Changed) -> None:
    """Another product right after the title, which nothing names as another."""
    page.insert_after_title(
        f'<div class="tile"><a href="/p">Other thing 1</a><span class="price">{page.other("0.5")}</span></div>'
    )


def classes_renamed(page: Changed) -> None:
    for element in page.root.iter():
        if isinstance(element.tag, str) and element.get("class"):
            element.set("class", " ".join(f"x{sum(map(ord, name)) % 9973}" for name in element.get("class").split()))


def classes_and_ids_removed(page: Changed) -> None:
    for element in page.root.iter():
        if isinstance(element.tag, str):
            for name in ("class", "id"):
                element.attrib.pop(name, None)


def everything_twice(page: Changed) -> None:
    body = page.root.find("body")
    copy = lxml_html.fromstring(lxml_html.tostring(page.title.getparent().getparent()))
    body.append(copy)


def sold_out_on_the_page_only(page: Changed) -> None:
    page.stock = OUT
    page.insert_after_title('<p class="notice">This product is currently out of stock.</p>')
    for button in page.root.xpath("//main//button | //form//button | //form//input[@type='submit']"):
        button.set("disabled", "disabled")


def sold_out_in_the_markup_only(page: Changed) -> None:
    page.stock = None
    for script in page.scripts():
        script.text = re.sub("InStock|BackOrder", "SoldOut", script.text or "")


def price_out_of_the_markup(page: Changed) -> None:
    for script in page.scripts():
        script.getparent().remove(script)
    for element in page.root.xpath("//*[@itemprop='price'] | //meta[contains(@property, 'price')]"):
        element.attrib.pop("itemprop", None)
        element.attrib.pop("property", None)


def price_off_the_page(page: Changed) -> None:
    page.replace_price("")


def old_price_first(page: Changed) -> None:
    page.insert_after_title(f"<p><s>{page.other('1.25')}</s></p>")


def old_price_without_a_word(page: Changed) -> None:
    page.insert_after_title(f"<div><span>{page.other('1.25')}</span></div>")


def page_in_another_currency(page: Changed) -> None:
    # Only a page without markup may be believed: it says nothing else.
    page.currency = "EUR" if page.currency == "USD" else "GBP"
    for element in page.root.find("body").iter():
        if isinstance(element.tag, str) and element.tag != "script":
            for where in ("text", "tail"):
                if text := getattr(element, where):
                    setattr(element, where, text.replace("€", "£").replace("$", "€"))


def markup_in_another_currency(page: Changed) -> None:
    # Every price in the markup, so that nothing names the former currency; "$" may be a Canadian one.
    if page.case.name.endswith("no_markup"):
        return
    page.currency = "CAD" if page.currency == "USD" else "CHF"
    for script in page.scripts():
        script.text = re.sub('"(USD|EUR)"', f'"{page.currency}"', script.text or "")
    for element in page.root.xpath("//*[@itemprop='priceCurrency'] | //meta[contains(@property, 'currency')]"):
        element.set("content", page.currency)


def tiers_added(page: Changed) -> None:
    page.insert_after_title(
        f"<table><tr><th>Quantity</th><th>Price</th></tr><tr><td>5 - 9</td><td>{page.other('0.95')}</td></tr>"
        f"<tr><td>10+</td><td>{page.other('0.9')}</td></tr></table>"
    )


def tiers_without_one(page: Changed) -> None:
    page.insert_after_title(f"<p>Buy 10 or more: {page.other('0.9')}</p>")


def per_round_first(page: Changed) -> None:
    page.insert_after_title(f"<p>{page.other('0.02')} / round</p>")


def hidden_prices(page: Changed) -> None:
    for markup in (
        f'<template><span class="price">{page.other()}</span></template>',
        f'<noscript><span class="price">{page.other()}</span></noscript>',
        f'<div style="display: none"><span class="price">{page.other()}</span></div>',
        f'<div hidden><span class="price">{page.other()}</span></div>',
    ):
        page.insert_after_title(markup)


def product_of_another_first(page: Changed) -> None:
    other = {
        "@context": "https://schema.org", "@type": "Product", "name": "Other thing 1", "sku": "OTHER-1",
        "offers": {"@type": "Offer", "price": "7.77", "priceCurrency": "USD", "availability": "https://schema.org/InStock"},
    }  # fmt: skip
    script = lxml_html.fragment_fromstring(f'<script type="application/ld+json">{json.dumps(other)}</script>')
    page.root.find("head").insert(0, script)


def markup_cut(page: Changed) -> None:
    for script in page.scripts():
        script.text = (script.text or "")[: len(script.text or "") * 2 // 3]


def markup_ten_times(page: Changed) -> None:
    for script in page.scripts():
        script.text = re.sub(r'("(?:price|lowPrice|highPrice)": "?)(\d+)', r"\g<1>\g<2>0", script.text or "")
    for element in page.root.xpath("//*[@itemprop='price'] | //meta[contains(@property, 'price:amount')]"):
        element.set("content", "99" + (element.get("content") or "1.00"))


def markup_with_a_range(page: Changed) -> None:
    for script in page.scripts():
        text = (script.text or "").replace('"price":', '"lowPrice":').replace('"Offer"', '"AggregateOffer"')
        script.text = text.replace('"lowPrice":', '"highPrice": "999.99", "lowPrice":')
    for element in page.root.xpath("//*[@itemprop='price']"):
        element.set("itemprop", "lowPrice")


def bar_with_another_price(page: Changed) -> None:
    page.root.find("body").append(lxml_html.fragment_fromstring(
        f'<div class="sticky-add-to-cart"><span>{page.other("1.1")}</span><button>Add to cart</button></div>'
    ))  # fmt: skip


def title_gone(page: Changed) -> None:
    for title in page.root.xpath("//h1"):
        title.tag = "div"
        title.text, title[:] = "Welcome", []


def page_price_changed(page: Changed) -> None:
    """The page is newer than its markup."""
    if page.case.name.endswith("no_markup"):
        return
    changed = page.replace_price(page.other("0.85"))
    page.price = None if changed else page.price


def product_gone(page: Changed) -> None:
    """Another product has its place; structured data is left over."""
    if page.case.name.endswith("no_markup"):
        return
    page.price = None
    for title in page.root.xpath("//h1"):
        title.text, title[:] = "Something else entirely for the kitchen", []
    page.replace_price(page.other("1.7"))


def parts_reversed(page: Changed) -> None:
    parent = page.title.getparent()
    parent[:] = list(parent)[::-1]


def price_from(page: Changed) -> None:
    changed = page.replace_price(f"from {page.case.goods.shown}")
    page.price = None if changed else page.price


def range_of_prices(page: Changed) -> None:
    changed = page.replace_price(f"{page.case.goods.shown} - {page.other('1.4')}")
    page.price = None if changed else page.price


def installments_first(page: Changed) -> None:
    page.insert_after_title(f"<p>4 x {page.other('0.25')} interest-free</p>")


def members_first(page: Changed) -> None:
    page.insert_after_title(f"<p>Club members pay {page.other('0.9')}</p>")


MUTATIONS: tuple[Callable[[Changed], None], ...] = (
    related_first, related_without_heading, classes_renamed, classes_and_ids_removed, everything_twice,
    sold_out_on_the_page_only, sold_out_in_the_markup_only, price_out_of_the_markup, price_off_the_page, old_price_first,
    old_price_without_a_word, page_in_another_currency, markup_in_another_currency, tiers_added, tiers_without_one,
    per_round_first, hidden_prices, product_of_another_first, markup_cut, markup_ten_times, markup_with_a_range,
    bar_with_another_price, title_gone, page_price_changed, product_gone, parts_reversed, price_from, range_of_prices,
    installments_first, members_first,
)  # fmt: skip


def mutate(case: Case, mutation: Callable[[Changed], None]) -> tuple[bytes, Changed]:
    """Return the changed page and what is true of it."""
    root = lxml_html.document_fromstring(case.html)
    page = Changed(root=root, case=case, price=case.price, currency=case.goods.currency, stock=case.stock)
    mutation(page)
    return lxml_html.tostring(root, encoding="utf-8", doctype="<!DOCTYPE html>"), page
