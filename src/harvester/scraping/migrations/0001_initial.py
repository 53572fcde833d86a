"""The tables of scraping, written as SQL in the file next to this one."""

from pathlib import Path

from django.db import migrations, models
from django.db.models import DO_NOTHING


class Migration(migrations.Migration):
    initial = True
    dependencies = [("runs", "0001_initial"), ("catalog", "0001_initial")]
    operations = [
        migrations.CreateModel(
            name="ScrapeTarget",
            fields=[
                ("id", models.UUIDField(primary_key=True, serialize=False)),
                ("source", models.ForeignKey("catalog.Source", DO_NOTHING, related_name="targets")),
                ("url", models.TextField()),
                ("product_id", models.BigIntegerField(null=True)),
                ("created_by", models.TextField()),
                ("created_at", models.DateTimeField()),
            ],
            options={"db_table": "scrape_targets", "managed": False},
        ),
        migrations.CreateModel(
            name="ScrapeRun",
            fields=[
                (
                    "run",
                    models.OneToOneField(
                        "runs.Run", DO_NOTHING, primary_key=True, related_name="scrape_run", serialize=False
                    ),
                ),
                ("source", models.ForeignKey("catalog.Source", DO_NOTHING, related_name="scrape_runs")),
                ("pages", models.BigIntegerField()),
                ("offers", models.BigIntegerField()),
                ("quarantined", models.BigIntegerField()),
                ("prices_written", models.BigIntegerField()),
                ("products_new", models.BigIntegerField()),
            ],
            options={"db_table": "scrape_runs", "managed": False},
        ),
        migrations.RunSQL(Path(__file__).with_suffix(".sql").read_text()),
    ]
