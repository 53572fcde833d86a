"""Secrets at rest. Written and opened only by `harvester.guards.secrets`."""

from django.db import models
from django.db.models.functions import Now


class SealedSecret(models.Model):
    """One secret of an owner (a feed, a connection), sealed for itself."""

    pk = models.CompositePrimaryKey("owner_kind", "owner_id", "name")
    owner_kind = models.TextField(db_collation="C")
    owner_id = models.UUIDField()
    #: The kind of secret, such as `password`. Empty for a document of several secrets from an earlier version.
    name = models.TextField(db_collation="C", default="")
    #: Which secrets of such a document are still valid; null means all.
    kept = models.JSONField(null=True)
    #: The owner's version at the last change of this secret: it counts changes of the credentials, not of the key. It
    #: is part of the associated data.
    version = models.IntegerField()
    key_id = models.TextField(db_collation="C")
    payload = models.BinaryField()
    #: When the credentials last changed.
    updated_at = models.DateTimeField(db_default=Now())

    class Meta:
        db_table = "sealed_secrets"

    def __str__(self) -> str:
        return f"{self.owner_kind} {self.owner_id} {self.name}".rstrip()
