"""The tables of feeds, written as SQL in the file beside this one."""

from pathlib import Path

import django.db.models.deletion
import django.db.models.functions.datetime
from django.db import migrations, models

import harvester.feeds.states
import harvester.kernel.ids


class Migration(migrations.Migration):
    initial = True

    dependencies = [("catalog", "0001_initial")]

    operations = [
        migrations.CreateModel(
            name="Feed",
            fields=[
                (
                    "id",
                    models.UUIDField(
                        default=harvester.kernel.ids.uuid7, editable=False, primary_key=True, serialize=False
                    ),
                ),
                ("lock_no", models.IntegerField(db_default=models.Value(0), editable=False, unique=True)),
                ("network", models.TextField()),
                (
                    "status",
                    models.TextField(
                        choices=[
                            (harvester.feeds.states.FeedStatus["DRAFT"], harvester.feeds.states.FeedStatus["DRAFT"]),
                            (
                                harvester.feeds.states.FeedStatus["ENABLED"],
                                harvester.feeds.states.FeedStatus["ENABLED"],
                            ),
                            (harvester.feeds.states.FeedStatus["PAUSED"], harvester.feeds.states.FeedStatus["PAUSED"]),
                            (
                                harvester.feeds.states.FeedStatus["DISABLED"],
                                harvester.feeds.states.FeedStatus["DISABLED"],
                            ),
                        ],
                        default=harvester.feeds.states.FeedStatus["DRAFT"],
                    ),
                ),
                ("schedule_hours", models.SmallIntegerField(blank=True, null=True)),
                ("next_run_at", models.DateTimeField(editable=False, null=True)),
                ("manual_run_requested_at", models.DateTimeField(editable=False, null=True)),
                ("consecutive_failures", models.IntegerField(default=0, editable=False)),
                ("last_run_at", models.DateTimeField(editable=False, null=True)),
                (
                    "transport",
                    models.TextField(
                        choices=[
                            (harvester.feeds.states.Transport["SFTP"], harvester.feeds.states.Transport["SFTP"]),
                            (harvester.feeds.states.Transport["FTP"], harvester.feeds.states.Transport["FTP"]),
                        ],
                        default=harvester.feeds.states.Transport["SFTP"],
                    ),
                ),
                ("host", models.TextField(blank=True, default="")),
                ("port", models.IntegerField(blank=True, null=True)),
                ("path", models.TextField(blank=True, default="")),
                ("username", models.TextField(blank=True, default="")),
                ("host_keys", models.TextField(blank=True, default="")),
                ("seen_host_key", models.TextField(blank=True, default="")),
                ("secret_version", models.IntegerField(default=0, editable=False)),
                ("secret_fields", models.JSONField(default=list, editable=False)),
                ("format", models.TextField(default="CSV")),
                (
                    "compression",
                    models.TextField(
                        choices=[
                            (harvester.feeds.states.Compression["NONE"], harvester.feeds.states.Compression["NONE"]),
                            (harvester.feeds.states.Compression["GZIP"], harvester.feeds.states.Compression["GZIP"]),
                        ],
                        default=harvester.feeds.states.Compression["NONE"],
                    ),
                ),
                ("encoding", models.TextField(blank=True, default="")),
                ("default_currency", models.TextField(blank=True, default="")),
                ("decimal_style", models.TextField(blank=True, default="")),
                ("use_manifest", models.BooleanField(default=True)),
                ("max_file_bytes", models.BigIntegerField(blank=True, null=True)),
                ("max_rows", models.IntegerField(blank=True, null=True)),
                ("max_products", models.IntegerField(blank=True, null=True)),
                ("thresholds", models.JSONField(blank=True, default=dict)),
                ("accepts_url_identity", models.BooleanField(default=False)),
                ("unchanged_means_seen", models.BooleanField(default=False)),
                ("last_remote_mtime", models.DateTimeField(editable=False, null=True)),
                ("last_remote_size", models.BigIntegerField(editable=False, null=True)),
                ("last_content_hash", models.TextField(editable=False, null=True)),
                ("last_ingested_run_no", models.BigIntegerField(editable=False, null=True)),
                ("last_parser_version", models.IntegerField(editable=False, null=True)),
                ("created_by", models.TextField(editable=False)),
                (
                    "created_at",
                    models.DateTimeField(db_default=django.db.models.functions.datetime.Now(), editable=False),
                ),
                (
                    "updated_at",
                    models.DateTimeField(db_default=django.db.models.functions.datetime.Now(), editable=False),
                ),
            ],
            options={
                "db_table": "feeds",
                "managed": False,
            },
        ),
        migrations.CreateModel(
            name="FeedRun",
            fields=[
                (
                    "run",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.DO_NOTHING,
                        primary_key=True,
                        related_name="feed_run",
                        serialize=False,
                        to="catalog.run",
                    ),
                ),
                ("next_try_at", models.DateTimeField(null=True)),
                ("skipped_reason", models.TextField(null=True)),
                ("remote_mtime", models.DateTimeField(null=True)),
                ("remote_size", models.BigIntegerField(null=True)),
                ("manifest_rows", models.BigIntegerField(null=True)),
                ("download_bytes", models.BigIntegerField(null=True)),
                ("rows_read", models.BigIntegerField(null=True)),
                ("rows_parsed", models.BigIntegerField(null=True)),
                ("products_upserted", models.BigIntegerField(null=True)),
                ("products_new", models.BigIntegerField(null=True)),
                ("products_changed", models.BigIntegerField(null=True)),
                ("products_missing", models.BigIntegerField(null=True)),
                ("products_back", models.BigIntegerField(null=True)),
                ("products_expired", models.BigIntegerField(null=True)),
                ("products_rejected", models.BigIntegerField(null=True)),
                ("prices_written", models.BigIntegerField(null=True)),
                ("prices_due", models.BigIntegerField(null=True)),
                ("error_count", models.BigIntegerField(default=0)),
                ("duplicate_key_count", models.BigIntegerField(default=0)),
                ("url_hash_fallback_count", models.BigIntegerField(null=True)),
                ("identity_upgrades", models.BigIntegerField(null=True)),
                ("known_products", models.BigIntegerField(null=True)),
                ("shocked_products", models.BigIntegerField(null=True)),
                ("active_count_before", models.BigIntegerField(null=True)),
                ("seen_success_count", models.BigIntegerField(null=True)),
                ("would_expire_count", models.BigIntegerField(null=True)),
                ("is_partial", models.BooleanField(default=False)),
                ("verdict", models.JSONField(default=list)),
                ("rejects", models.JSONField(default=dict)),
                ("warnings", models.JSONField(default=dict)),
                ("dialect", models.JSONField(default=dict)),
                ("timings", models.JSONField(default=dict)),
            ],
            options={
                "db_table": "feed_runs",
                "managed": False,
            },
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
                ("code", models.TextField()),
                ("place", models.SmallIntegerField()),
                ("line", models.BigIntegerField()),
                ("row", models.TextField()),
                ("reason", models.TextField(default="")),
            ],
            options={
                "db_table": "feed_run_samples",
                "managed": False,
            },
        ),
        migrations.RunSQL(Path(__file__).with_suffix(".sql").read_text(), migrations.RunSQL.noop),
    ]
