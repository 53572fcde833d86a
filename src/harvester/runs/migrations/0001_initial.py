"""The table of runs, written as SQL in the file next to this one."""

from pathlib import Path

from django.db import migrations, models
from django.db.models import DO_NOTHING

HERE = Path(__file__)
SQL = HERE.parents[1] / "sql"


class Migration(migrations.Migration):
    initial = True
    dependencies = [("engine", "0001_initial")]
    operations = [
        migrations.CreateModel(
            name="Run",
            fields=[
                ("id", models.UUIDField(primary_key=True, serialize=False)),
                ("no", models.BigIntegerField(unique=True)),
                ("kind", models.TextField()),
                ("subject_id", models.UUIDField()),
                ("source_id", models.UUIDField(null=True)),
                ("trigger", models.TextField()),
                ("status", models.TextField()),
                ("outcome", models.TextField(null=True)),
                ("started_at", models.DateTimeField()),
                ("finished_at", models.DateTimeField(null=True)),
                ("duration_ms", models.BigIntegerField(null=True)),
                ("job_id", models.BigIntegerField(null=True, unique=True)),
                ("lease", models.UUIDField(null=True)),
                ("attempt", models.SmallIntegerField()),
                ("stage", models.TextField(null=True)),
                ("next_try_at", models.DateTimeField(null=True)),
                ("timings", models.JSONField()),
                ("artifact_hash", models.TextField(null=True)),
                ("observed_at", models.DateTimeField(null=True)),
                ("verdict", models.JSONField()),
                ("error_code", models.TextField(null=True)),
                ("error", models.TextField(null=True)),
                ("decided_at", models.DateTimeField(null=True)),
                ("decided_by", models.TextField(null=True)),
                ("decision_reason", models.TextField(null=True)),
                ("ignored_at", models.DateTimeField(null=True)),
                ("ignored_by", models.TextField(null=True)),
                ("ignored_reason", models.TextField(null=True)),
                ("refuses_file", models.BooleanField()),
            ],
            options={"db_table": "runs", "managed": False},
        ),
        migrations.CreateModel(
            name="RunPart",
            fields=[
                ("id", models.UUIDField(primary_key=True, serialize=False)),
                ("run", models.ForeignKey("runs.Run", DO_NOTHING, related_name="parts")),
                ("target_id", models.UUIDField()),
                ("job_id", models.BigIntegerField(null=True, unique=True)),
                ("outcome", models.TextField(null=True)),
                ("detail", models.JSONField()),
                ("observed_at", models.DateTimeField(null=True)),
                ("ended_at", models.DateTimeField(null=True)),
            ],
            options={"db_table": "run_parts", "managed": False},
        ),
        migrations.RunSQL((SQL / "functions.sql").read_text()),
        migrations.RunSQL(HERE.with_suffix(".sql").read_text()),
    ]
