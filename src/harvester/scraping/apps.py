"""Registers scraping with Django and its jobs with the engine."""

from django.apps import AppConfig


class ScrapingConfig(AppConfig):
    name = "harvester.scraping"
    label = "scraping"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        from harvester.runs.kinds import register
        from harvester.scraping import jobs, metrics

        register("SCRAPE", "harvester.scraping.runs:SCRAPE_RUNS")
        jobs.register()
        metrics.register()
