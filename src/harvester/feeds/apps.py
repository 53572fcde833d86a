"""Registers feeds with Django and their jobs with the engine."""

from django.apps import AppConfig


class FeedsConfig(AppConfig):
    name = "harvester.feeds"
    label = "feeds"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        from harvester.feeds import jobs, metrics
        from harvester.runs.kinds import register

        register("AFFILIATE_FEED", "harvester.feeds.runs:FEED_RUNS")
        jobs.register()
        metrics.register()
