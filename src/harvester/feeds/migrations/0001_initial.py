"""The tables of feeds, written as SQL in the file next to this one."""

from pathlib import Path

from django.db import migrations, models
from django.db.models import DO_NOTHING


class Migration(migrations.Migration):
    initial = True
    dependencies = [("runs", "0001_initial"), ("catalog", "0001_initial")]
    operations = [
        migrations.CreateModel(
            name="Feed",
            fields=[
                ("id", models.UUIDField(primary_key=True, serialize=False)),
                ("source", models.OneToOneField("catalog.Source", DO_NOTHING, related_name="feed")),
                ("lock_no", models.IntegerField(unique=True)),
                ("network", models.TextField()),
                ("status", models.TextField()),
                ("schedule_hours", models.SmallIntegerField(null=True)),
                ("next_run_at", models.DateTimeField(null=True)),
                ("manual_run_requested_at", models.DateTimeField(null=True)),
                ("consecutive_failures", models.IntegerField()),
                ("last_run_at", models.DateTimeField(null=True)),
                ("retired_at", models.DateTimeField(null=True)),
                ("transport", models.TextField()),
                ("host", models.TextField()),
                ("port", models.IntegerField(null=True)),
                ("path", models.TextField()),
                ("username", models.TextField()),
                ("host_keys", models.TextField()),
                ("seen_host_key", models.TextField()),
                ("secret_version", models.IntegerField()),
                ("secret_fields", models.JSONField()),
                ("format", models.TextField()),
                ("compression", models.TextField()),
                ("encoding", models.TextField()),
                ("default_currency", models.TextField()),
                ("decimal_style", models.TextField()),
                ("unknown_stock", models.TextField()),
                ("kept_parameters", models.JSONField()),
                ("use_manifest", models.BooleanField()),
                ("takes_file_as_is", models.BooleanField()),
                ("max_file_bytes", models.BigIntegerField(null=True)),
                ("max_rows", models.IntegerField(null=True)),
                ("max_products", models.IntegerField(null=True)),
                ("thresholds", models.JSONField()),
                ("accepts_url_identity", models.BooleanField()),
                ("unchanged_means_seen", models.BooleanField()),
                ("last_remote_mtime", models.DateTimeField(null=True)),
                ("last_remote_size", models.BigIntegerField(null=True)),
                ("last_content_hash", models.TextField(null=True)),
                ("last_ingested_run_no", models.BigIntegerField(null=True)),
                ("last_parser_version", models.IntegerField(null=True)),
                ("created_by", models.TextField()),
                ("created_at", models.DateTimeField()),
                ("updated_at", models.DateTimeField()),
            ],
            options={"db_table": "feeds", "managed": False},
        ),
        migrations.CreateModel(
            name="FeedRun",
            fields=[
                (
                    "run",
                    models.OneToOneField(
                        "runs.Run", DO_NOTHING, primary_key=True, related_name="feed_run", serialize=False
                    ),
                ),
                ("feed", models.ForeignKey("feeds.Feed", DO_NOTHING, related_name="runs")),
                ("skipped_reason", models.TextField(null=True)),
                ("remote_mtime", models.DateTimeField(null=True)),
                ("remote_size", models.BigIntegerField(null=True)),
                ("manifest_rows", models.BigIntegerField(null=True)),
                ("download_bytes", models.BigIntegerField(null=True)),
                ("fetched_hash", models.TextField(null=True)),
                ("fetched_at", models.DateTimeField(null=True)),
                ("file_end", models.TextField(null=True)),
                ("rows_read", models.BigIntegerField(null=True)),
                ("rows_parsed", models.BigIntegerField(null=True)),
                ("products_upserted", models.BigIntegerField(null=True)),
                ("products_new", models.BigIntegerField(null=True)),
                ("products_changed", models.BigIntegerField(null=True)),
                ("products_missing", models.BigIntegerField(null=True)),
                ("products_back", models.BigIntegerField(null=True)),
                ("products_expired", models.BigIntegerField(null=True)),
                ("products_rejected", models.BigIntegerField(null=True)),
                ("prices_due", models.BigIntegerField(null=True)),
                ("prices_written", models.BigIntegerField(null=True)),
                ("error_count", models.BigIntegerField()),
                ("duplicate_key_count", models.BigIntegerField()),
                ("url_hash_fallback_count", models.BigIntegerField(null=True)),
                ("identity_upgrades", models.BigIntegerField(null=True)),
                ("known_products", models.BigIntegerField(null=True)),
                ("shocked_products", models.BigIntegerField(null=True)),
                ("active_count_before", models.BigIntegerField(null=True)),
                ("seen_success_count", models.BigIntegerField(null=True)),
                ("would_expire_count", models.BigIntegerField(null=True)),
                ("is_partial", models.BooleanField()),
                ("rejects", models.JSONField()),
                ("warnings", models.JSONField()),
                ("notices", models.JSONField()),
                ("dialect", models.JSONField()),
            ],
            options={"db_table": "feed_runs", "managed": False},
        ),
        migrations.CreateModel(
            name="FeedRunSample",
            fields=[
                (
                    "pk",
                    models.CompositePrimaryKey(
                        "run_id", "code", "place", blank=True, editable=False, primary_key=True, serialize=False
                    ),
                ),
                ("run", models.ForeignKey("feeds.FeedRun", DO_NOTHING, related_name="samples")),
                ("code", models.TextField()),
                ("place", models.SmallIntegerField()),
                ("line", models.BigIntegerField()),
                ("row", models.TextField()),
                ("reason", models.TextField()),
            ],
            options={"db_table": "feed_run_samples", "managed": False},
        ),
        migrations.RunSQL(Path(__file__).with_suffix(".sql").read_text()),
    ]
