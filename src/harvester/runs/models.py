"""The model of runs. The table is created by hand-written SQL."""

from django.db import models
from django.db.models.functions import Now

from harvester.kernel.ids import uuid7
from harvester.runs.states import RunOutcome, RunStatus


class Run(models.Model):
    """One attempt to bring something in, with any outcome.

    Each kind of run has a table of its own with the figures of its runs; `runs.kinds` says what a kind is. What it is a
    run of is its subject (for a feed's run, the feed).
    """

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    no = models.BigIntegerField(db_default=models.Value(0), unique=True, editable=False)
    kind = models.TextField()
    subject_id = models.UUIDField()
    source_id = models.UUIDField(null=True)
    trigger = models.TextField()
    status = models.TextField(choices=[(word.value, word.value) for word in RunStatus])
    outcome = models.TextField(choices=[(word.value, word.value) for word in RunOutcome], null=True)
    started_at = models.DateTimeField(db_default=Now())
    finished_at = models.DateTimeField(null=True)
    duration_ms = models.BigIntegerField(null=True)
    job_id = models.BigIntegerField(null=True, unique=True)
    lease = models.UUIDField(null=True)
    attempt = models.SmallIntegerField(default=1)
    stage = models.TextField(null=True)
    next_try_at = models.DateTimeField(null=True)
    timings = models.JSONField(default=dict)
    artifact_hash = models.TextField(null=True)
    observed_at = models.DateTimeField(null=True)
    verdict = models.JSONField(default=list)
    error_code = models.TextField(null=True)
    error = models.TextField(null=True)
    decided_at = models.DateTimeField(null=True)
    decided_by = models.TextField(null=True)
    decision_reason = models.TextField(null=True)
    ignored_at = models.DateTimeField(null=True)
    ignored_by = models.TextField(null=True)
    ignored_reason = models.TextField(null=True)
    refuses_file = models.BooleanField(db_default=False)

    class Meta:
        managed = False
        db_table = "runs"

    def __str__(self) -> str:
        return f"run {self.no}"


class RunPart(models.Model):
    """One part of a run that is made of parts, such as a page; each has a job of its own.

    The table is partitioned by the day on which the run began; give `begun_at` where a part is looked up.
    """

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    begun_at = models.DateTimeField()
    run = models.ForeignKey(Run, on_delete=models.DO_NOTHING, related_name="parts")
    target_id = models.UUIDField()
    job_id = models.BigIntegerField(null=True)
    outcome = models.TextField(null=True)
    detail = models.JSONField(default=dict)
    found = models.JSONField(null=True)
    page = models.TextField(null=True)
    version = models.TextField(null=True)
    observed_at = models.DateTimeField(null=True)
    ended_at = models.DateTimeField(null=True)
    judged_at = models.DateTimeField(null=True)

    class Meta:
        managed = False
        db_table = "run_parts"

    def __str__(self) -> str:
        return f"part of {self.run}"
