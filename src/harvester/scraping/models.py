"""The models of scraping. The tables are created by hand-written SQL."""

from django.db import models
from django.db.models.functions import Now

from harvester.catalog.models import Source
from harvester.kernel.ids import uuid7
from harvester.runs.models import Run


class ScrapeTarget(models.Model):
    """A page of a shop to be read."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    source = models.ForeignKey(Source, on_delete=models.PROTECT, related_name="targets")
    url = models.TextField()
    product_id = models.BigIntegerField(null=True)
    created_by = models.TextField(editable=False)
    created_at = models.DateTimeField(db_default=Now(), editable=False)

    class Meta:
        managed = False
        db_table = "scrape_targets"

    def __str__(self) -> str:
        return self.url


class ScrapeRun(models.Model):
    """The figures of one run over pages of a source."""

    run = models.OneToOneField(Run, on_delete=models.DO_NOTHING, primary_key=True, related_name="scrape_run")
    source = models.ForeignKey(Source, on_delete=models.PROTECT, related_name="scrape_runs")
    pages = models.BigIntegerField(default=0)
    offers = models.BigIntegerField(default=0)
    quarantined = models.BigIntegerField(default=0)
    prices_written = models.BigIntegerField(default=0)
    products_new = models.BigIntegerField(default=0)

    class Meta:
        managed = False
        db_table = "scrape_runs"

    def __str__(self) -> str:
        return f"figures of {self.run}"
