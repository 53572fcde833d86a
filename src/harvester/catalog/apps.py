"""Registers the catalog with Django and its jobs with the engine."""

from django.apps import AppConfig


class CatalogConfig(AppConfig):
    name = "harvester.catalog"
    label = "catalog"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        from harvester.catalog import offer_check, resolver, search_index

        offer_check.register()
        resolver.register()
        search_index.register()
