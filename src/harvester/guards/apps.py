"""Registers the guards with Django: they have one table, the sealed secrets."""

from django.apps import AppConfig


class GuardsConfig(AppConfig):
    name = "harvester.guards"
    label = "guards"
