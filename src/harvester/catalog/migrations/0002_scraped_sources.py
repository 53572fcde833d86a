"""Columns of sources that are scraped."""

from pathlib import Path

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("catalog", "0001_initial")]
    operations = [
        migrations.AddField("source", "adapter_id", models.TextField(null=True)),
        migrations.AddField("source", "scrape_enabled", models.BooleanField(default=False)),
        migrations.AddField("source", "scrape_config", models.JSONField(default=dict)),
        migrations.AddField("source", "robots_compliant", models.BooleanField(default=True)),
        migrations.AddField("source", "robots_set_by", models.TextField(null=True)),
        migrations.AddField("source", "robots_refusals", models.SmallIntegerField(default=0)),
        migrations.AddField("source", "tos_reviewed_at", models.DateTimeField(null=True)),
        migrations.AddField("source", "tos_approved_by", models.TextField(null=True)),
        migrations.AddField("source", "tos_note", models.TextField(null=True)),
        migrations.RunSQL(Path(__file__).with_suffix(".sql").read_text()),
    ]
