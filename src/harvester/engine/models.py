"""Read models of the engine's tables.

The tables are created by hand-written SQL (partitions, partial indexes, fill factors), so Django manages none of
them; all writes use the statements in `sql.py`.
"""

from django.db import models

from harvester.engine.states import JobState


class Job(models.Model):
    """One piece of durable work."""

    id = models.BigIntegerField(primary_key=True)
    kind = models.TextField()
    queue = models.TextField()
    lane = models.TextField(null=True)
    dedupe_key = models.TextField(null=True)
    args = models.JSONField()
    priority = models.SmallIntegerField()
    state = models.TextField(choices=[(state.value, state.value) for state in JobState])
    run_at = models.DateTimeField()
    attempt = models.SmallIntegerField()
    max_attempts = models.SmallIntegerField()
    lease = models.UUIDField(null=True)
    worker = models.TextField(null=True)
    heartbeat_at = models.DateTimeField(null=True)
    cancel_requested_at = models.DateTimeField(null=True)
    progress = models.JSONField(null=True)
    result = models.JSONField(null=True)
    error_type = models.TextField(null=True)
    error = models.TextField(null=True)
    traceback = models.TextField(null=True)
    created_at = models.DateTimeField()
    started_at = models.DateTimeField(null=True)
    finished_at = models.DateTimeField(null=True)

    class Meta:
        managed = False
        db_table = "jobs"

    def __str__(self) -> str:
        return f"{self.kind} {self.id}"


class JobEvent(models.Model):
    """One transition of one job."""

    id = models.BigIntegerField(primary_key=True)
    job_id = models.BigIntegerField()
    at = models.DateTimeField()
    state = models.TextField()
    attempt = models.SmallIntegerField()
    worker = models.TextField(null=True)
    detail = models.TextField(null=True)

    class Meta:
        managed = False
        db_table = "job_events"

    def __str__(self) -> str:
        return f"{self.job_id} {self.state}"


class PeriodicJob(models.Model):
    """A job that is enqueued on a schedule."""

    name = models.TextField(primary_key=True)
    kind = models.TextField()
    cron = models.TextField()
    next_at = models.DateTimeField()
    last_at = models.DateTimeField(null=True)
    last_job_id = models.BigIntegerField(null=True)

    class Meta:
        managed = False
        db_table = "periodic_jobs"

    def __str__(self) -> str:
        return self.name
