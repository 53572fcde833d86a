"""Offers, prices and corrections as text and HTML for people, for templates."""

from django import template

from harvester.portal.catalog import labels

register = template.Library()
register.simple_tag(labels.money)
register.filter("offer_link", labels.offer_link)
register.filter("about", labels.about)
register.filter("effect", labels.effect)
register.filter("exposure", labels.exposure)
