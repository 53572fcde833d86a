"""The models of evidence. The tables are created by hand-written SQL."""

from django.db import models
from django.db.models.functions import Now

from harvester.kernel.ids import uuid7
from harvester.runs.models import Run


class Connection(models.Model):
    """An actor on a server, with its input."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    name = models.TextField(unique=True)
    actor = models.TextField()
    server = models.TextField()
    input = models.JSONField(default=dict)
    enabled = models.BooleanField(default=True)
    created_by = models.TextField(editable=False)
    created_at = models.DateTimeField(db_default=Now(), editable=False)

    class Meta:
        managed = False
        db_table = "connections"

    def __str__(self) -> str:
        return self.name


class ActorRun(models.Model):
    """The figures of one run of an actor."""

    run = models.OneToOneField(Run, on_delete=models.DO_NOTHING, primary_key=True, related_name="actor_run")
    connection = models.ForeignKey(Connection, on_delete=models.PROTECT, related_name="runs")
    start_sent_at = models.DateTimeField(null=True)
    remote_run_id = models.TextField(null=True)
    dataset_id = models.TextField(null=True)
    rows = models.BigIntegerField(null=True)
    real_rows = models.BigIntegerField(null=True)
    items_written = models.BigIntegerField(null=True)

    class Meta:
        managed = False
        db_table = "actor_runs"

    def __str__(self) -> str:
        return f"figures of {self.run}"
