"""The engine's tables and the functions that tables of every app need, written as SQL."""

from pathlib import Path

from django.db import migrations, models

FUNCTIONS = Path(__file__).parents[1] / "sql" / "functions.sql"


class Migration(migrations.Migration):
    initial = True
    dependencies = []
    operations = [
        migrations.CreateModel(
            name="Job",
            fields=[
                ("id", models.BigIntegerField(primary_key=True, serialize=False)),
                ("kind", models.TextField()),
                ("queue", models.TextField()),
                ("lane", models.TextField(null=True)),
                ("dedupe_key", models.TextField(null=True)),
                ("args", models.JSONField()),
                ("priority", models.SmallIntegerField()),
                ("state", models.TextField()),
                ("run_at", models.DateTimeField()),
                ("attempt", models.SmallIntegerField()),
                ("max_attempts", models.SmallIntegerField()),
                ("lease", models.UUIDField(null=True)),
                ("worker", models.TextField(null=True)),
                ("heartbeat_at", models.DateTimeField(null=True)),
                ("cancel_requested_at", models.DateTimeField(null=True)),
                ("progress", models.JSONField(null=True)),
                ("result", models.JSONField(null=True)),
                ("error_type", models.TextField(null=True)),
                ("error", models.TextField(null=True)),
                ("traceback", models.TextField(null=True)),
                ("created_at", models.DateTimeField()),
                ("started_at", models.DateTimeField(null=True)),
                ("finished_at", models.DateTimeField(null=True)),
            ],
            options={"db_table": "jobs", "managed": False},
        ),
        migrations.CreateModel(
            name="JobEvent",
            fields=[
                ("id", models.BigIntegerField(primary_key=True, serialize=False)),
                ("job_id", models.BigIntegerField()),
                ("at", models.DateTimeField()),
                ("state", models.TextField()),
                ("attempt", models.SmallIntegerField()),
                ("worker", models.TextField(null=True)),
                ("detail", models.TextField(null=True)),
            ],
            options={"db_table": "job_events", "managed": False},
        ),
        migrations.CreateModel(
            name="PeriodicJob",
            fields=[
                ("name", models.TextField(primary_key=True, serialize=False)),
                ("kind", models.TextField()),
                ("cron", models.TextField()),
                ("next_at", models.DateTimeField()),
                ("last_at", models.DateTimeField(null=True)),
                ("last_job_id", models.BigIntegerField(null=True)),
            ],
            options={"db_table": "periodic_jobs", "managed": False},
        ),
        migrations.RunSQL(FUNCTIONS.read_text()),
        migrations.RunSQL(Path(__file__).with_suffix(".sql").read_text()),
    ]
