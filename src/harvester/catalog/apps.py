"""Registers the catalog with Django."""

from django.apps import AppConfig


class CatalogConfig(AppConfig):
    name = "harvester.catalog"
    label = "catalog"
    default_auto_field = "django.db.models.BigAutoField"
