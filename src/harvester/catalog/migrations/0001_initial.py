"""The catalog's tables, written as SQL. Its views and functions are applied by the newest migration that changed them."""

from pathlib import Path

from django.db import migrations, models
from django.db.models import DO_NOTHING

HERE = Path(__file__)


class Migration(migrations.Migration):
    initial = True
    dependencies = [("runs", "0001_initial")]
    operations = [
        migrations.CreateModel(
            name="Retailer",
            fields=[
                ("id", models.UUIDField(primary_key=True, serialize=False)),
                ("name", models.TextField()),
                ("website", models.TextField()),
                ("domain", models.TextField(null=True, unique=True)),
                ("created_at", models.DateTimeField()),
            ],
            options={"db_table": "retailers", "managed": False},
        ),
        migrations.CreateModel(
            name="Source",
            fields=[
                ("id", models.UUIDField(primary_key=True, serialize=False)),
                ("retailer", models.ForeignKey("catalog.Retailer", DO_NOTHING, related_name="sources")),
                ("name", models.TextField(unique=True)),
                ("kind", models.TextField()),
                ("url", models.TextField()),
                ("is_display_primary", models.BooleanField()),
                ("affiliate_network", models.TextField(null=True)),
                ("affiliate_account_id", models.TextField(null=True)),
                ("affiliate_account_name", models.TextField(null=True)),
                ("tracking_template", models.TextField()),
                ("upc_trusted", models.BooleanField()),
                ("visibility", models.TextField()),
                ("expiry_hours", models.SmallIntegerField(null=True)),
                ("max_hold_hours", models.SmallIntegerField()),
                ("frozen", models.DurationField()),
                ("held_run_no", models.BigIntegerField(null=True)),
                ("held_since", models.DateTimeField(null=True)),
                ("last_promoted_run_no", models.BigIntegerField(null=True)),
                ("last_promoted_at", models.DateTimeField(null=True)),
                ("last_promoted_count", models.BigIntegerField(null=True)),
                ("last_promoted_hash", models.TextField(null=True)),
                ("last_observed_at", models.DateTimeField(null=True)),
                ("content_hash_version", models.SmallIntegerField()),
                ("price_heartbeat_hours", models.SmallIntegerField()),
                ("enabled", models.BooleanField()),
                ("rate_per_minute", models.IntegerField(null=True)),
                ("last_success_at", models.DateTimeField(null=True)),
                ("last_failure_at", models.DateTimeField(null=True)),
                ("paused_until", models.DateTimeField(null=True)),
                ("created_at", models.DateTimeField()),
            ],
            options={"db_table": "sources", "managed": False},
        ),
        migrations.CreateModel(
            name="PriceCorrection",
            fields=[
                ("id", models.UUIDField(primary_key=True, serialize=False)),
                ("scope", models.TextField()),
                ("retailer", models.ForeignKey("catalog.Retailer", DO_NOTHING, null=True)),
                ("source", models.ForeignKey("catalog.Source", DO_NOTHING, null=True)),
                ("product_id", models.BigIntegerField(null=True)),
                ("run_no", models.BigIntegerField(null=True)),
                ("extent", models.TextField()),
                ("observed_from", models.DateTimeField(null=True)),
                ("observed_to", models.DateTimeField(null=True)),
                ("action", models.TextField()),
                ("multiplier", models.DecimalField(decimal_places=6, max_digits=12, null=True)),
                ("set_amount", models.DecimalField(decimal_places=4, max_digits=14, null=True)),
                ("set_currency", models.TextField(null=True)),
                ("reason", models.TextField()),
                ("created_by", models.TextField()),
                ("created_at", models.DateTimeField()),
                ("revoked_by", models.TextField(null=True)),
                ("revoked_at", models.DateTimeField(null=True)),
            ],
            options={"db_table": "price_corrections", "managed": False},
        ),
        migrations.RunSQL(HERE.with_suffix(".sql").read_text()),
    ]
