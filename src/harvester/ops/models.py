"""Read model of the audit trail; written only by `audit.record`."""

from django.contrib.postgres.fields import ArrayField
from django.db import models


class AuditEvent(models.Model):
    """One write by a person, or by a decision of the system's own."""

    id = models.BigIntegerField(primary_key=True)
    at = models.DateTimeField()
    actor_kind = models.TextField()
    actor_id = models.TextField()
    actor_name = models.TextField()
    verb = models.TextField()
    object_type = models.TextField()
    object_id = models.TextField()
    changed = ArrayField(models.TextField())
    detail = models.JSONField()

    class Meta:
        managed = False
        db_table = "audit_events"

    def __str__(self) -> str:
        return f"{self.actor_name} {self.verb} {self.object_type} {self.object_id}"
