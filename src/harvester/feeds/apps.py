"""Registers feeds with Django."""

from django.apps import AppConfig


class FeedsConfig(AppConfig):
    name = "harvester.feeds"
    label = "feeds"
    default_auto_field = "django.db.models.BigAutoField"
