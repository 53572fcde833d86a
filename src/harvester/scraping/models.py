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
    adapter_id = models.TextField()
    canonical_url = models.TextField()
    schedule = models.TextField(null=True)
    priority = models.SmallIntegerField(default=0)
    status = models.TextField(default="ACTIVE")
    enabled = models.BooleanField(default=True)
    robots_path_blocked = models.BooleanField(default=False)
    due_at = models.DateTimeField(null=True)
    recheck_at = models.DateTimeField(null=True)
    recheck_reason = models.TextField(null=True)
    last_scraped_at = models.DateTimeField(null=True)
    last_success_at = models.DateTimeField(null=True)
    last_status = models.TextField(null=True)
    last_detail = models.TextField(null=True)
    consecutive_failures = models.SmallIntegerField(default=0)
    last_seen = models.JSONField(null=True)
    waiting = models.JSONField(null=True)
    pinned_product_id = models.BigIntegerField(null=True)
    pinned = models.JSONField(null=True)
    chosen = models.JSONField(default=dict)
    moved_to = models.TextField(null=True)
    etag = models.TextField(null=True)
    last_modified = models.TextField(null=True)
    last_full_fetch_at = models.DateTimeField(null=True)
    page = models.TextField(null=True)
    notes = models.TextField(default="")
    updated_at = models.DateTimeField(db_default=Now())

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
    adapter_id = models.TextField(null=True)
    adapter_version = models.TextField(null=True)
    retailer_id = models.UUIDField(null=True)
    requested_by = models.TextField(null=True)
    urls_succeeded = models.BigIntegerField(default=0)
    urls_failed = models.BigIntegerField(default=0)
    offers_valid = models.BigIntegerField(default=0)
    offers_dropped = models.BigIntegerField(default=0)
    zero_prices = models.BigIntegerField(default=0)
    oos_no_price = models.BigIntegerField(default=0)
    not_modified = models.BigIntegerField(default=0)
    batches_refused = models.BigIntegerField(default=0)
    failure_rate = models.DecimalField(max_digits=5, decimal_places=4, null=True)
    yield_rate = models.DecimalField(max_digits=5, decimal_places=4, null=True)
    drop_rate = models.DecimalField(max_digits=5, decimal_places=4, null=True)
    fields_found = models.JSONField(default=dict)

    class Meta:
        managed = False
        db_table = "scrape_runs"

    def __str__(self) -> str:
        return f"figures of {self.run}"


class AdapterState(models.Model):
    """How an adapter does on one source."""

    pk = models.CompositePrimaryKey("source_id", "adapter_id")
    source = models.ForeignKey(Source, on_delete=models.PROTECT, related_name="adapter_states")
    adapter_id = models.TextField()
    enabled = models.BooleanField(default=True)
    disabled_at = models.DateTimeField(null=True)
    disabled_reason = models.TextField(null=True)
    disabled_by = models.TextField(null=True)
    check_next_run = models.BooleanField(default=False)
    check_run_no = models.BigIntegerField(null=True)
    baseline_failure_rate = models.DecimalField(max_digits=5, decimal_places=4, null=True)
    baseline_yield_rate = models.DecimalField(max_digits=5, decimal_places=4, null=True)
    baseline_sample_size = models.IntegerField(default=0)
    baseline_updated_at = models.DateTimeField(null=True)
    failed_batches = models.SmallIntegerField(default=0)
    empty_batches = models.SmallIntegerField(default=0)
    zero_price_batches = models.SmallIntegerField(default=0)
    last_batch_failure_rate = models.DecimalField(max_digits=5, decimal_places=4, null=True)
    backoff_until = models.DateTimeField(null=True)
    backoff_seconds = models.IntegerField(default=0)
    uncounted = models.IntegerField(default=0)
    recent = models.JSONField(default=list)
    created_at = models.DateTimeField(db_default=Now())
    updated_at = models.DateTimeField(db_default=Now())

    class Meta:
        managed = False
        db_table = "adapter_states"

    def __str__(self) -> str:
        return f"{self.adapter_id} on {self.source}"


class ScrapeBatch(models.Model):
    """A batch of pages that was judged."""

    id = models.BigAutoField(primary_key=True)
    source = models.ForeignKey(Source, on_delete=models.PROTECT, related_name="scrape_batches")
    adapter_id = models.TextField()
    adapter_version = models.TextField()
    run_no = models.BigIntegerField()
    judged_at = models.DateTimeField()
    attempts = models.IntegerField()
    new_attempts = models.IntegerField()
    failures = models.IntegerField()
    offers = models.IntegerField()
    zero_prices = models.IntegerField()
    verdict = models.JSONField()
    is_refused = models.BooleanField()

    class Meta:
        managed = False
        db_table = "scrape_batches"

    def __str__(self) -> str:
        return f"batch {self.pk} of {self.adapter_id}"


class ScrapeTotal(models.Model):
    """A count that only grows."""

    pk = models.CompositePrimaryKey("source_id", "adapter_id", "figure", "word")
    source = models.ForeignKey(Source, on_delete=models.PROTECT, related_name="scrape_totals")
    adapter_id = models.TextField()
    figure = models.TextField()
    word = models.TextField()
    total = models.BigIntegerField()

    class Meta:
        managed = False
        db_table = "scrape_totals"

    def __str__(self) -> str:
        return f"{self.figure} {self.word}"


class QuarantineEntry(models.Model):
    """A page that was read and not believed."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    source = models.ForeignKey(Source, on_delete=models.PROTECT, related_name="quarantine")
    target = models.ForeignKey(ScrapeTarget, on_delete=models.CASCADE, related_name="quarantine")
    run_no = models.BigIntegerField()
    part_id = models.UUIDField()
    reason = models.TextField()
    detail = models.TextField()
    adapter_id = models.TextField()
    version = models.TextField()
    found = models.JSONField(null=True)
    evidence = models.JSONField(default=list)
    page = models.TextField(null=True)
    observed_at = models.DateTimeField()
    created_at = models.DateTimeField(db_default=Now())
    status = models.TextField(default="OPEN")
    resolved_at = models.DateTimeField(null=True)
    resolved_by = models.TextField(null=True)
    note = models.TextField(null=True)

    class Meta:
        managed = False
        db_table = "quarantine"

    def __str__(self) -> str:
        return f"{self.reason} of {self.target}"


class KeptPage(models.Model):
    """A page whose bytes are kept."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    hash = models.TextField()
    source = models.ForeignKey(Source, on_delete=models.PROTECT, null=True, related_name="kept_pages")
    target = models.ForeignKey(ScrapeTarget, on_delete=models.CASCADE, null=True, related_name="kept_pages")
    run_no = models.BigIntegerField(null=True)
    url = models.TextField()
    status = models.SmallIntegerField()
    content_type = models.TextField()
    bytes = models.BigIntegerField()
    stored_bytes = models.BigIntegerField()
    fetched_at = models.DateTimeField()
    importance = models.SmallIntegerField(default=0)
    keep_until = models.DateTimeField()
    found = models.JSONField(null=True)
    outcome = models.TextField(null=True)
    version = models.TextField(null=True)

    class Meta:
        managed = False
        db_table = "kept_pages"

    def __str__(self) -> str:
        return self.url


class ScrapeOverride(models.Model):
    """Where a source differs from its site file."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    source = models.ForeignKey(Source, on_delete=models.PROTECT, related_name="scrape_overrides")
    version = models.IntegerField()
    places = models.JSONField()
    status = models.TextField(default="DRAFT")
    backtest = models.JSONField(null=True)
    note = models.TextField(default="")
    created_by = models.TextField()
    created_at = models.DateTimeField(db_default=Now())
    activated_by = models.TextField(null=True)
    activated_at = models.DateTimeField(null=True)

    class Meta:
        managed = False
        db_table = "scrape_overrides"

    def __str__(self) -> str:
        return f"override {self.version} of {self.source}"


class ScrapeImport(models.Model):
    """A list of addresses that a person pasted or uploaded."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    status = models.TextField(default="PREVIEW")
    name = models.TextField()
    rows = models.JSONField()
    refused = models.JSONField(default=list)
    choices = models.JSONField(default=dict)
    results = models.JSONField(default=dict)
    job_id = models.BigIntegerField(null=True)
    created_by = models.TextField()
    created_at = models.DateTimeField(db_default=Now())
    finished_at = models.DateTimeField(null=True)

    class Meta:
        managed = False
        db_table = "scrape_imports"

    def __str__(self) -> str:
        return self.name


class RobotsFile(models.Model):
    """The robots.txt of one scheme, host and port."""

    origin = models.TextField(primary_key=True)
    state = models.TextField()
    body = models.BinaryField(null=True)
    status = models.SmallIntegerField(null=True)
    detail = models.TextField(default="")
    fetched_at = models.DateTimeField()
    expires_at = models.DateTimeField()
    failures = models.SmallIntegerField(default=0)
    tries = models.SmallIntegerField(default=0)

    class Meta:
        managed = False
        db_table = "robots_files"

    def __str__(self) -> str:
        return self.origin


class FetchRequest(models.Model):
    """A single fetch that belongs to no run."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    purpose = models.TextField()
    url = models.TextField()
    source = models.ForeignKey(Source, on_delete=models.PROTECT, null=True, related_name="+")
    requested_by = models.TextField()
    created_at = models.DateTimeField(db_default=Now(), editable=False)
    job_id = models.BigIntegerField(null=True)
    state = models.JSONField(default=dict)
    page = models.TextField(null=True)
    observed_at = models.DateTimeField(null=True)
    outcome = models.TextField(null=True)
    result = models.JSONField(null=True)
    finished_at = models.DateTimeField(null=True)

    class Meta:
        managed = False
        db_table = "fetch_requests"

    def __str__(self) -> str:
        return self.url
