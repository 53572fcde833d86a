"""Alerts, written as SQL in the file beside this one."""

from pathlib import Path

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("ops", "0002_audit")]

    operations = [
        migrations.CreateModel(
            name="Alert",
            fields=[
                ("id", models.BigIntegerField(primary_key=True, serialize=False)),
                ("kind", models.TextField()),
                ("key", models.TextField()),
                ("severity", models.TextField()),
                ("title", models.TextField()),
                ("body", models.TextField()),
                ("detail", models.JSONField()),
                ("opened_at", models.DateTimeField()),
                ("last_seen_at", models.DateTimeField()),
                ("times", models.BigIntegerField()),
                ("resolved_at", models.DateTimeField(null=True)),
                ("resolved_note", models.TextField()),
                ("opened_told_at", models.DateTimeField(null=True)),
                ("resolved_told_at", models.DateTimeField(null=True)),
                ("delivery_error", models.TextField(null=True)),
            ],
            options={"db_table": "alerts", "managed": False},
        ),
        migrations.RunSQL(Path(__file__).with_suffix(".sql").read_text(), "DROP TABLE alerts"),
    ]
