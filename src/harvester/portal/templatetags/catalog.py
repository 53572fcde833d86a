"""Offers, prices and corrections as people read them, for templates."""

from decimal import Decimal
from typing import Any

from django import template
from django.utils.safestring import SafeString

from harvester.catalog.browsing import Line
from harvester.catalog.models import PriceCorrection
from harvester.portal.catalog import words

register = template.Library()


@register.simple_tag
def money(amount: Decimal | None, currency: str | None) -> str | SafeString:
    return words.money(amount, currency)


@register.filter
def offer_link(line: Line) -> SafeString:
    return words.offer_link(line)


@register.filter
def about(correction: PriceCorrection) -> SafeString:
    return words.about(correction)


@register.filter
def effect(correction: PriceCorrection) -> str:
    return words.effect(correction)


@register.filter
def exposure(source: Any) -> SafeString:
    return words.exposure(source)
