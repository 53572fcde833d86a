"""Feeds and the figures of their runs. The tables are created by hand-written SQL."""

from django.db import models
from django.db.models.functions import Now

from harvester.catalog.models import Source
from harvester.feeds.states import Compression, FeedStatus, Transport
from harvester.kernel.ids import uuid7
from harvester.kernel.stock import UnknownStock
from harvester.runs.models import Run


class Feed(models.Model):
    """How a source's catalog is fetched and read."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    source = models.OneToOneField(Source, on_delete=models.PROTECT, related_name="feed")
    lock_no = models.IntegerField(db_default=models.Value(0), unique=True, editable=False)
    network = models.TextField()
    status = models.TextField(choices=[(word, word) for word in FeedStatus], default=FeedStatus.DRAFT)
    schedule_hours = models.SmallIntegerField(null=True, blank=True)
    next_run_at = models.DateTimeField(null=True, editable=False)
    manual_run_requested_at = models.DateTimeField(null=True, editable=False)
    consecutive_failures = models.IntegerField(default=0, editable=False)
    last_run_at = models.DateTimeField(null=True, editable=False)
    transport = models.TextField(choices=[(word, word) for word in Transport], default=Transport.SFTP)
    host = models.TextField(default="", blank=True)
    port = models.IntegerField(null=True, blank=True)
    path = models.TextField(default="", blank=True)
    username = models.TextField(default="", blank=True)
    host_keys = models.TextField(default="", blank=True)
    seen_host_key = models.TextField(default="", blank=True)
    secret_version = models.IntegerField(default=0, editable=False)
    secret_fields = models.JSONField(default=list, editable=False)
    format = models.TextField(default="CSV")
    compression = models.TextField(choices=[(word, word) for word in Compression], default=Compression.NONE)
    encoding = models.TextField(default="", blank=True)
    default_currency = models.TextField(default="", blank=True)
    decimal_style = models.TextField(default="", blank=True)
    unknown_stock = models.TextField(choices=[(word, word) for word in UnknownStock], default=UnknownStock.IN_STOCK)
    kept_parameters = models.JSONField(default=list, blank=True)
    takes_file_as_is = models.BooleanField(default=False, editable=False)
    use_manifest = models.BooleanField(default=True)
    max_file_bytes = models.BigIntegerField(null=True, blank=True)
    max_rows = models.IntegerField(null=True, blank=True)
    max_products = models.IntegerField(null=True, blank=True)
    thresholds = models.JSONField(default=dict, blank=True)
    accepts_url_identity = models.BooleanField(default=False)
    unchanged_means_seen = models.BooleanField(default=False)
    last_remote_mtime = models.DateTimeField(null=True, editable=False)
    last_remote_size = models.BigIntegerField(null=True, editable=False)
    last_content_hash = models.TextField(null=True, editable=False)
    last_ingested_run_no = models.BigIntegerField(null=True, editable=False)
    last_parser_version = models.IntegerField(null=True, editable=False)
    retired_at = models.DateTimeField(null=True, editable=False)
    created_by = models.TextField(editable=False)
    created_at = models.DateTimeField(db_default=Now(), editable=False)
    updated_at = models.DateTimeField(db_default=Now(), editable=False)

    class Meta:
        managed = False
        db_table = "feeds"

    def __str__(self) -> str:
        return self.source.name


class FeedRun(models.Model):
    """The figures of one run of a feed."""

    run = models.OneToOneField(Run, on_delete=models.DO_NOTHING, primary_key=True, related_name="feed_run")
    feed = models.ForeignKey(Feed, on_delete=models.PROTECT, related_name="runs")
    skipped_reason = models.TextField(null=True)
    remote_mtime = models.DateTimeField(null=True)
    remote_size = models.BigIntegerField(null=True)
    fetched_hash = models.TextField(null=True)
    fetched_at = models.DateTimeField(null=True)
    file_end = models.TextField(null=True)
    manifest_rows = models.BigIntegerField(null=True)
    download_bytes = models.BigIntegerField(null=True)
    rows_read = models.BigIntegerField(null=True)
    rows_parsed = models.BigIntegerField(null=True)
    products_upserted = models.BigIntegerField(null=True)
    products_new = models.BigIntegerField(null=True)
    products_changed = models.BigIntegerField(null=True)
    products_missing = models.BigIntegerField(null=True)
    products_back = models.BigIntegerField(null=True)
    products_expired = models.BigIntegerField(null=True)
    products_rejected = models.BigIntegerField(null=True)
    prices_written = models.BigIntegerField(null=True)
    prices_due = models.BigIntegerField(null=True)
    error_count = models.BigIntegerField(default=0)
    duplicate_key_count = models.BigIntegerField(default=0)
    url_hash_fallback_count = models.BigIntegerField(null=True)
    identity_upgrades = models.BigIntegerField(null=True)
    known_products = models.BigIntegerField(null=True)
    shocked_products = models.BigIntegerField(null=True)
    active_count_before = models.BigIntegerField(null=True)
    seen_success_count = models.BigIntegerField(null=True)
    would_expire_count = models.BigIntegerField(null=True)
    is_partial = models.BooleanField(default=False)
    rejects = models.JSONField(default=dict)
    warnings = models.JSONField(default=dict)
    notices = models.JSONField(default=list)
    dialect = models.JSONField(default=dict)

    class Meta:
        managed = False
        db_table = "feed_runs"

    def __str__(self) -> str:
        return f"figures of {self.run}"


class FeedRunSample(models.Model):
    """One of the first rows that were rejected or got a warning for one reason."""

    pk = models.CompositePrimaryKey("run_id", "code", "place")
    run = models.ForeignKey(FeedRun, on_delete=models.DO_NOTHING, related_name="samples")
    code = models.TextField()
    place = models.SmallIntegerField()
    line = models.BigIntegerField()
    row = models.TextField()
    reason = models.TextField(default="")

    class Meta:
        managed = False
        db_table = "feed_run_samples"

    def __str__(self) -> str:
        return f"{self.code} in line {self.line}"
