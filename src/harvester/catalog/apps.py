"""Registers the catalog with Django and its jobs with the engine."""

from django.apps import AppConfig


class CatalogConfig(AppConfig):
    name = "harvester.catalog"
    label = "catalog"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        from harvester.catalog import offers, resolver, search_index

        offers.register()
        resolver.register()
        search_index.register()
