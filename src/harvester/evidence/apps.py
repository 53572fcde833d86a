"""Registers evidence with Django and its jobs with the engine."""

from django.apps import AppConfig


class EvidenceConfig(AppConfig):
    name = "harvester.evidence"
    label = "evidence"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        from harvester.evidence import jobs
        from harvester.runs.kinds import register

        register("ACTOR", "harvester.evidence.runs:ACTOR_RUNS")
        jobs.register()
