"""Users and API keys; read-only models of the audit log and of alerts, which `audit` and `alerts` write."""

from datetime import datetime

from django.contrib.auth.models import AbstractUser
from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models.functions import Lower, Now
from django.utils import timezone

from harvester.kernel.actor import Actor
from harvester.kernel.ids import uuid7


class Role(models.TextChoices):
    """The permissions of a person; each role includes the one before it."""

    VIEWER = "viewer", "Viewer: sees everything but secrets"
    OPERATOR = "operator", "Operator: runs, pauses, approves, retries"
    ADMIN = "admin", "Admin: changes what exists and who may do what"


class User(AbstractUser):
    """A person with a login."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    role = models.CharField(max_length=16, choices=Role.choices, default=Role.VIEWER)

    class Meta(AbstractUser.Meta):
        db_table = "users"
        constraints = (models.UniqueConstraint(Lower("username"), name="users_username_in_any_letters"),)

    def may(self, role: Role) -> bool:
        """Whether this person has at least this role."""
        order = list(Role)
        return self.is_active and order.index(Role(self.role)) >= order.index(role)

    @property
    def actor(self) -> Actor:
        return Actor(kind="person", id=str(self.pk), name=self.get_username())


class AuditEvent(models.Model):
    """One write by a person, an application or the system."""

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


class Alert(models.Model):
    """A condition that people should know of, from its start to its end (written only by `alerts`)."""

    id = models.BigIntegerField(primary_key=True)
    kind = models.TextField()
    key = models.TextField()
    severity = models.TextField()
    title = models.TextField()
    body = models.TextField()
    detail = models.JSONField()
    opened_at = models.DateTimeField()
    last_seen_at = models.DateTimeField()
    times = models.BigIntegerField()
    resolved_at = models.DateTimeField(null=True)
    resolved_note = models.TextField()
    opened_delivered_at = models.DateTimeField(null=True)
    resolved_delivered_at = models.DateTimeField(null=True)
    delivery_error = models.TextField(null=True)

    class Meta:
        managed = False
        db_table = "alerts"

    def __str__(self) -> str:
        return self.title

    def delivered_at(self, phase: str) -> datetime | None:
        """Return when the message of a phase was delivered."""
        moment: datetime | None = getattr(self, f"{phase}_delivered_at")
        return moment


class ApiKey(models.Model):
    """The key of an application for the API (written only by `api_keys`)."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    name = models.TextField()
    prefix = models.TextField()
    token_hash = models.TextField(unique=True)
    scopes = ArrayField(models.TextField())
    created_by = models.TextField()
    created_at = models.DateTimeField(db_default=Now(), editable=False)
    expires_at = models.DateTimeField(null=True)
    last_used_at = models.DateTimeField(null=True)
    revoked_at = models.DateTimeField(null=True)
    revoked_by = models.TextField(null=True)

    class Meta:
        managed = False
        db_table = "api_keys"

    def __str__(self) -> str:
        return self.name

    @property
    def actor(self) -> Actor:
        return Actor(kind="key", id=str(self.pk), name=self.name)

    @property
    def state(self) -> str:
        """`valid`, `expired` or `revoked`."""
        if self.revoked_at:
            return "revoked"
        return "expired" if self.expires_at and self.expires_at <= timezone.now() else "valid"
