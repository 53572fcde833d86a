"""The tables of the catalog, written as SQL in the file beside this one."""

import datetime as dt
from pathlib import Path

import django.db.models.functions.datetime
from django.db import migrations, models

import harvester.kernel.ids


class Migration(migrations.Migration):
    initial = True

    dependencies = [("ops", "0002_audit")]

    operations = [
        migrations.CreateModel(
            name="PriceCorrection",
            fields=[
                (
                    "id",
                    models.UUIDField(
                        default=harvester.kernel.ids.uuid7, editable=False, primary_key=True, serialize=False
                    ),
                ),
                (
                    "scope",
                    models.TextField(
                        choices=[("PRODUCT", "PRODUCT"), ("RETAILER", "RETAILER"), ("SOURCE", "SOURCE"), ("RUN", "RUN")]
                    ),
                ),
                ("product_id", models.BigIntegerField(null=True)),
                ("run_no", models.BigIntegerField(null=True)),
                ("observed_from", models.DateTimeField(null=True)),
                ("observed_to", models.DateTimeField(null=True)),
                ("action", models.TextField(choices=[("IGNORE", "IGNORE"), ("MULTIPLIER", "MULTIPLIER")])),
                ("multiplier", models.DecimalField(decimal_places=6, max_digits=12, null=True)),
                ("reason", models.TextField()),
                ("created_by", models.TextField()),
                (
                    "created_at",
                    models.DateTimeField(db_default=django.db.models.functions.datetime.Now(), editable=False),
                ),
                ("revoked_by", models.TextField(null=True)),
                ("revoked_at", models.DateTimeField(null=True)),
            ],
            options={
                "db_table": "price_corrections",
                "managed": False,
            },
        ),
        migrations.CreateModel(
            name="Retailer",
            fields=[
                (
                    "id",
                    models.UUIDField(
                        default=harvester.kernel.ids.uuid7, editable=False, primary_key=True, serialize=False
                    ),
                ),
                ("name", models.TextField()),
                ("website", models.TextField(blank=True, default="")),
                ("domain", models.TextField(blank=True, null=True, unique=True)),
                (
                    "created_at",
                    models.DateTimeField(db_default=django.db.models.functions.datetime.Now(), editable=False),
                ),
            ],
            options={
                "db_table": "retailers",
                "managed": False,
            },
        ),
        migrations.CreateModel(
            name="Run",
            fields=[
                (
                    "id",
                    models.UUIDField(
                        default=harvester.kernel.ids.uuid7, editable=False, primary_key=True, serialize=False
                    ),
                ),
                ("no", models.BigIntegerField(db_default=models.Value(0), editable=False, unique=True)),
                (
                    "kind",
                    models.TextField(
                        choices=[
                            ("AFFILIATE_FEED", "AFFILIATE_FEED"),
                            ("SCRAPE", "SCRAPE"),
                            ("ACTOR", "ACTOR"),
                            ("MANUAL", "MANUAL"),
                        ]
                    ),
                ),
                ("trigger", models.TextField()),
                (
                    "status",
                    models.TextField(
                        choices=[("RUNNING", "RUNNING"), ("SUCCEEDED", "SUCCEEDED"), ("FAILED", "FAILED")]
                    ),
                ),
                (
                    "outcome",
                    models.TextField(
                        choices=[
                            ("PROMOTED", "PROMOTED"),
                            ("HELD", "HELD"),
                            ("APPROVED", "APPROVED"),
                            ("REJECTED", "REJECTED"),
                            ("OVERTAKEN", "OVERTAKEN"),
                            ("SKIPPED", "SKIPPED"),
                        ],
                        null=True,
                    ),
                ),
                ("started_at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ("finished_at", models.DateTimeField(null=True)),
                ("duration_ms", models.BigIntegerField(null=True)),
                ("job_id", models.BigIntegerField(null=True, unique=True)),
                ("lease", models.UUIDField(null=True)),
                ("attempt", models.SmallIntegerField(default=1)),
                ("stage", models.TextField(null=True)),
                ("artifact_hash", models.TextField(null=True)),
                ("observed_at", models.DateTimeField(null=True)),
                ("error_code", models.TextField(null=True)),
                ("error", models.TextField(null=True)),
                ("decided_at", models.DateTimeField(null=True)),
                ("decided_by", models.TextField(null=True)),
                ("decision_reason", models.TextField(null=True)),
                ("ignored_at", models.DateTimeField(null=True)),
                ("ignored_by", models.TextField(null=True)),
                ("ignored_reason", models.TextField(null=True)),
            ],
            options={
                "db_table": "runs",
                "managed": False,
            },
        ),
        migrations.CreateModel(
            name="Source",
            fields=[
                (
                    "id",
                    models.UUIDField(
                        default=harvester.kernel.ids.uuid7, editable=False, primary_key=True, serialize=False
                    ),
                ),
                ("name", models.TextField(unique=True)),
                (
                    "kind",
                    models.TextField(
                        choices=[("DIRECT", "DIRECT"), ("AFFILIATE_FEED", "AFFILIATE_FEED"), ("OTHER", "OTHER")]
                    ),
                ),
                ("url", models.TextField(blank=True, default="")),
                ("is_display_primary", models.BooleanField(default=False)),
                ("affiliate_network", models.TextField(blank=True, null=True)),
                ("affiliate_account_id", models.TextField(blank=True, null=True)),
                ("affiliate_account_name", models.TextField(blank=True, null=True)),
                ("tracking_template", models.TextField(blank=True, default="")),
                ("upc_trusted", models.BooleanField(default=False)),
                ("visibility", models.TextField(default="ELIGIBLE")),
                ("expiry_hours", models.SmallIntegerField(blank=True, null=True)),
                ("max_hold_hours", models.SmallIntegerField(default=168)),
                ("frozen", models.DurationField(db_default=dt.timedelta(0), editable=False)),
                ("held_run_no", models.BigIntegerField(editable=False, null=True)),
                ("held_since", models.DateTimeField(editable=False, null=True)),
                ("last_promoted_run_no", models.BigIntegerField(editable=False, null=True)),
                ("last_promoted_at", models.DateTimeField(editable=False, null=True)),
                ("last_promoted_count", models.BigIntegerField(editable=False, null=True)),
                ("last_promoted_hash", models.TextField(editable=False, null=True)),
                ("last_observed_at", models.DateTimeField(editable=False, null=True)),
                ("content_hash_version", models.SmallIntegerField(default=0, editable=False)),
                ("price_heartbeat_hours", models.SmallIntegerField(default=24)),
                ("enabled", models.BooleanField(default=True)),
                ("rate_per_minute", models.IntegerField(blank=True, null=True)),
                ("failure_streak", models.IntegerField(default=0, editable=False)),
                ("last_success_at", models.DateTimeField(editable=False, null=True)),
                ("last_failure_at", models.DateTimeField(editable=False, null=True)),
                ("paused_until", models.DateTimeField(editable=False, null=True)),
                (
                    "created_at",
                    models.DateTimeField(db_default=django.db.models.functions.datetime.Now(), editable=False),
                ),
            ],
            options={
                "db_table": "sources",
                "managed": False,
            },
        ),
        migrations.RunSQL(Path(__file__).with_suffix(".sql").read_text(), migrations.RunSQL.noop),
    ]
