"""What fetching pages needs: see the SQL file."""

from pathlib import Path

from django.db import migrations, models
from django.db.models import CASCADE, DO_NOTHING


class Migration(migrations.Migration):
    dependencies = [("scraping", "0003_judging"), ("scraping", "0004_control")]
    operations = [
        migrations.AlterField(
            "keptpage", "source", models.ForeignKey("catalog.Source", DO_NOTHING, null=True, related_name="kept_pages")
        ),
        migrations.AlterField(
            "keptpage",
            "target",
            models.ForeignKey("scraping.ScrapeTarget", CASCADE, null=True, related_name="kept_pages"),
        ),
        migrations.AddField("keptpage", "outcome", models.TextField(null=True)),
        migrations.AddField("keptpage", "version", models.TextField(null=True)),
        migrations.AddField("robotsfile", "tries", models.SmallIntegerField(default=0)),
        migrations.CreateModel(
            name="FetchRequest",
            fields=[
                ("id", models.UUIDField(primary_key=True, serialize=False)),
                ("purpose", models.TextField()),
                ("url", models.TextField()),
                ("source", models.ForeignKey("catalog.Source", DO_NOTHING, null=True, related_name="+")),
                ("requested_by", models.TextField()),
                ("created_at", models.DateTimeField()),
                ("job_id", models.BigIntegerField(null=True)),
                ("state", models.JSONField(default=dict)),
                ("page", models.TextField(null=True)),
                ("observed_at", models.DateTimeField(null=True)),
                ("outcome", models.TextField(null=True)),
                ("result", models.JSONField(null=True)),
                ("finished_at", models.DateTimeField(null=True)),
            ],
            options={"db_table": "fetch_requests", "managed": False},
        ),
        migrations.RunSQL(Path(__file__).with_suffix(".sql").read_text()),
    ]
