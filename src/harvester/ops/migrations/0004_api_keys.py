"""API keys and the answers to their writes, written as SQL in the file beside this one."""

from pathlib import Path

import django.contrib.postgres.fields
from django.db import migrations, models

import harvester.kernel.ids


class Migration(migrations.Migration):
    dependencies = [("ops", "0003_alerts")]

    operations = [
        migrations.CreateModel(
            name="ApiKey",
            fields=[
                (
                    "id",
                    models.UUIDField(
                        default=harvester.kernel.ids.uuid7, editable=False, primary_key=True, serialize=False
                    ),
                ),
                ("name", models.TextField()),
                ("prefix", models.TextField()),
                ("token_hash", models.TextField(unique=True)),
                ("scopes", django.contrib.postgres.fields.ArrayField(base_field=models.TextField(), size=None)),
                ("created_by", models.TextField()),
                (
                    "created_at",
                    models.DateTimeField(db_default=django.db.models.functions.datetime.Now(), editable=False),
                ),
                ("expires_at", models.DateTimeField(null=True)),
                ("last_used_at", models.DateTimeField(null=True)),
                ("revoked_at", models.DateTimeField(null=True)),
                ("revoked_by", models.TextField(null=True)),
            ],
            options={"db_table": "api_keys", "managed": False},
        ),
        migrations.RunSQL(
            Path(__file__).with_suffix(".sql").read_text(), "DROP TABLE api_answers; DROP TABLE api_keys"
        ),
    ]
