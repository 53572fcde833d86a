"""Models of the catalog's control tables and read models of its volume tables.

The tables are made by hand-written SQL: keys that begin with the source, partitions, partial indexes and views are the
design. Control rows are written by the verbs of this layer and above, volume rows by promotion alone.
"""

from datetime import timedelta
from enum import StrEnum

from django.db import models
from django.db.models.functions import Now

from harvester.catalog.states import (
    CorrectionAction,
    CorrectionExtent,
    CorrectionScope,
    SourceKind,
)
from harvester.kernel.ids import uuid7


def _choices(words: type[StrEnum]) -> list[tuple[str, str]]:
    return [(word.value, word.value) for word in words]


class Retailer(models.Model):
    """Somebody who sells."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    name = models.TextField()
    website = models.TextField(default="", blank=True)
    domain = models.TextField(null=True, blank=True, unique=True)
    created_at = models.DateTimeField(db_default=Now(), editable=False)

    class Meta:
        managed = False
        db_table = "retailers"

    def __str__(self) -> str:
        return self.name


class Source(models.Model):
    """One way in which a retailer's offers reach us."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    retailer = models.ForeignKey(Retailer, on_delete=models.PROTECT, related_name="sources")
    name = models.TextField(unique=True)
    kind = models.TextField(choices=_choices(SourceKind))
    url = models.TextField(default="", blank=True)
    is_display_primary = models.BooleanField(default=False)
    affiliate_network = models.TextField(null=True, blank=True)
    affiliate_account_id = models.TextField(null=True, blank=True)
    affiliate_account_name = models.TextField(null=True, blank=True)
    tracking_template = models.TextField(default="", blank=True)
    upc_trusted = models.BooleanField(default=False)
    visibility = models.TextField(default="INELIGIBLE")
    expiry_hours = models.SmallIntegerField(null=True, blank=True)
    max_hold_hours = models.SmallIntegerField(default=168)
    frozen = models.DurationField(db_default=timedelta(), editable=False)
    held_run_no = models.BigIntegerField(null=True, editable=False)
    held_since = models.DateTimeField(null=True, editable=False)
    last_promoted_run_no = models.BigIntegerField(null=True, editable=False)
    last_promoted_at = models.DateTimeField(null=True, editable=False)
    last_promoted_count = models.BigIntegerField(null=True, editable=False)
    last_promoted_hash = models.TextField(null=True, editable=False)
    last_observed_at = models.DateTimeField(null=True, editable=False)
    content_hash_version = models.SmallIntegerField(default=0, editable=False)
    price_heartbeat_hours = models.SmallIntegerField(default=24)
    enabled = models.BooleanField(default=True)
    rate_per_minute = models.IntegerField(null=True, blank=True)
    last_success_at = models.DateTimeField(null=True, editable=False)
    last_failure_at = models.DateTimeField(null=True, editable=False)
    paused_until = models.DateTimeField(null=True, editable=False)
    adapter_id = models.TextField(null=True, blank=True)
    scrape_enabled = models.BooleanField(default=False)
    scrape_config = models.JSONField(default=dict, blank=True)
    robots_compliant = models.BooleanField(default=True)
    robots_set_by = models.TextField(null=True, editable=False)
    robots_refusals = models.SmallIntegerField(default=0, editable=False)
    tos_reviewed_at = models.DateTimeField(null=True, editable=False)
    tos_approved_by = models.TextField(null=True, editable=False)
    tos_note = models.TextField(null=True, editable=False)
    created_at = models.DateTimeField(db_default=Now(), editable=False)

    class Meta:
        managed = False
        db_table = "sources"

    def __str__(self) -> str:
        return self.name


class PriceCorrection(models.Model):
    """How prices of a scope are read; never deleted, only revoked."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    scope = models.TextField(choices=_choices(CorrectionScope))
    retailer = models.ForeignKey(Retailer, on_delete=models.PROTECT, null=True)
    source = models.ForeignKey(Source, on_delete=models.PROTECT, null=True)
    product_id = models.BigIntegerField(null=True)
    run_no = models.BigIntegerField(null=True)
    observed_from = models.DateTimeField(null=True)
    observed_to = models.DateTimeField(null=True)
    action = models.TextField(choices=_choices(CorrectionAction))
    multiplier = models.DecimalField(max_digits=12, decimal_places=6, null=True)
    set_amount = models.DecimalField(max_digits=14, decimal_places=4, null=True)
    set_currency = models.TextField(null=True)
    extent = models.TextField(choices=_choices(CorrectionExtent), default=CorrectionExtent.WINDOW.value)
    reason = models.TextField()
    created_by = models.TextField()
    created_at = models.DateTimeField(db_default=Now(), editable=False)
    revoked_by = models.TextField(null=True)
    revoked_at = models.DateTimeField(null=True)

    class Meta:
        managed = False
        db_table = "price_corrections"

    def __str__(self) -> str:
        return f"{self.action} {self.scope}"
