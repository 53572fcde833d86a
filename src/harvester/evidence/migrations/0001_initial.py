"""The tables of evidence, written as SQL in the file next to this one."""

from pathlib import Path

from django.db import migrations, models
from django.db.models import DO_NOTHING


class Migration(migrations.Migration):
    initial = True
    dependencies = [("runs", "0001_initial")]
    operations = [
        migrations.CreateModel(
            name="Connection",
            fields=[
                ("id", models.UUIDField(primary_key=True, serialize=False)),
                ("name", models.TextField(unique=True)),
                ("actor", models.TextField()),
                ("server", models.TextField()),
                ("input", models.JSONField()),
                ("enabled", models.BooleanField()),
                ("created_by", models.TextField()),
                ("created_at", models.DateTimeField()),
            ],
            options={"db_table": "connections", "managed": False},
        ),
        migrations.CreateModel(
            name="ActorRun",
            fields=[
                (
                    "run",
                    models.OneToOneField(
                        "runs.Run", DO_NOTHING, primary_key=True, related_name="actor_run", serialize=False
                    ),
                ),
                ("connection", models.ForeignKey("evidence.Connection", DO_NOTHING, related_name="runs")),
                ("start_sent_at", models.DateTimeField(null=True)),
                ("remote_run_id", models.TextField(null=True)),
                ("dataset_id", models.TextField(null=True)),
                ("rows", models.BigIntegerField(null=True)),
                ("real_rows", models.BigIntegerField(null=True)),
                ("items_written", models.BigIntegerField(null=True)),
            ],
            options={"db_table": "actor_runs", "managed": False},
        ),
        migrations.RunSQL(Path(__file__).with_suffix(".sql").read_text()),
    ]
