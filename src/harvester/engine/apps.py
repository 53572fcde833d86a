"""Registers the engine with Django."""

from django.apps import AppConfig


class EngineConfig(AppConfig):
    name = "harvester.engine"
    label = "engine"
    default_auto_field = "django.db.models.BigAutoField"
