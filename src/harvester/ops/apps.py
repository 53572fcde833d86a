"""Registers operations with Django and its jobs with the engine."""

from django.apps import AppConfig


class OpsConfig(AppConfig):
    name = "harvester.ops"
    label = "ops"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        from harvester.ops import alerts, retention

        alerts.register()
        retention.register()
