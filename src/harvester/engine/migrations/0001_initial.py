"""The engine's tables, written as SQL in the file beside this one."""

from pathlib import Path

from django.db import migrations, models


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
                (
                    "state",
                    models.TextField(
                        choices=[
                            ("pending", "pending"),
                            ("running", "running"),
                            ("retryable", "retryable"),
                            ("succeeded", "succeeded"),
                            ("failed", "failed"),
                            ("cancelled", "cancelled"),
                        ]
                    ),
                ),
                ("run_at", models.DateTimeField()),
                ("attempt", models.SmallIntegerField()),
                ("max_attempts", models.SmallIntegerField()),
                ("lease", models.UUIDField(null=True)),
                ("worker", models.TextField(null=True)),
                ("heartbeat_at", models.DateTimeField(null=True)),
                ("writer_pid", models.IntegerField(null=True)),
                ("writer_started", models.DateTimeField(null=True)),
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
            options={
                "db_table": "jobs",
                "managed": False,
            },
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
            options={
                "db_table": "job_events",
                "managed": False,
            },
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
            options={
                "db_table": "periodic_jobs",
                "managed": False,
            },
        ),
        migrations.RunSQL(
            Path(__file__).with_suffix(".sql").read_text(),
            "DROP TABLE jobs, job_events, job_lanes, job_lane_wakeups, periodic_jobs",
        ),
    ]
