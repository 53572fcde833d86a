"""Offers, prices and corrections as people read them, for templates."""

from decimal import Decimal
from typing import Any

from django import template
from django.utils.safestring import SafeString

from harvester.catalog.models import PriceCorrection
from harvester.catalog.offer_browser import Line
from harvester.portal.catalog import labels

register = template.Library()


@register.simple_tag
def money(amount: Decimal | None, currency: str | None) -> str | SafeString:
    return labels.money(amount, currency)


@register.filter
def offer_link(line: Line) -> SafeString:
    return labels.offer_link(line)


@register.filter
def about(correction: PriceCorrection) -> SafeString:
    return labels.about(correction)


@register.filter
def effect(correction: PriceCorrection) -> str:
    return labels.effect(correction)


@register.filter
def exposure(source: Any) -> SafeString:
    return labels.exposure(source)
