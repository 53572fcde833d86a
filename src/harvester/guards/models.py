"""Secrets at rest. Written and opened only by `harvester.guards.secrets`."""

from django.db import models
from django.db.models.functions import Now


class SealedSecret(models.Model):
    """The credentials of one owner (a feed, a connection), sealed as one document."""

    pk = models.CompositePrimaryKey("owner_kind", "owner_id")
    owner_kind = models.TextField(db_collation="C")
    owner_id = models.UUIDField()
    #: Goes up with each change of the credentials, not with a change of the key. A part of what seals them.
    version = models.IntegerField()
    key_id = models.TextField(db_collation="C")
    payload = models.BinaryField()
    #: When the credentials changed last.
    updated_at = models.DateTimeField(db_default=Now())

    class Meta:
        db_table = "sealed_secrets"

    def __str__(self) -> str:
        return self.owner

    @property
    def owner(self) -> str:
        """The owner's name, for messages."""
        return f"{self.owner_kind} {self.owner_id}"
