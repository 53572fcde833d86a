"""Registers runs with Django and their jobs with the engine."""

from django.apps import AppConfig


class RunsConfig(AppConfig):
    name = "harvester.runs"
    label = "runs"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        from harvester.runs import jobs

        jobs.register()
