"""Judging: attempts that were not counted yet, the newest attempts, and totals for metrics."""

from pathlib import Path

from django.db import migrations, models
from django.db.models import DO_NOTHING


class Migration(migrations.Migration):
    dependencies = [("scraping", "0002_complete")]
    operations = [
        migrations.AddField("adapterstate", "uncounted", models.IntegerField(default=0)),
        migrations.AddField("adapterstate", "recent", models.JSONField(default=list)),
        migrations.CreateModel(
            name="ScrapeTotal",
            fields=[
                ("pk", models.CompositePrimaryKey("source_id", "adapter_id", "figure", "word")),
                ("source", models.ForeignKey("catalog.Source", DO_NOTHING, related_name="scrape_totals")),
                ("adapter_id", models.TextField()),
                ("figure", models.TextField()),
                ("word", models.TextField()),
                ("total", models.BigIntegerField()),
            ],
            options={"db_table": "scrape_totals", "managed": False},
        ),
        migrations.RunSQL(Path(__file__).with_suffix(".sql").read_text()),
    ]
