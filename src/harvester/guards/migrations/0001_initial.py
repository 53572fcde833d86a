"""Sealed secrets and rate limits, written as SQL in the file next to this one."""

from pathlib import Path

from django.db import migrations, models
from django.db.models.functions import Now


class Migration(migrations.Migration):
    initial = True
    dependencies = []
    operations = [
        migrations.RunSQL(
            Path(__file__).with_suffix(".sql").read_text(),
            state_operations=[
                migrations.CreateModel(
                    name="SealedSecret",
                    fields=[
                        (
                            "pk",
                            models.CompositePrimaryKey(
                                "owner_kind", "owner_id", "name", blank=True, editable=False, primary_key=True,
                                serialize=False,
                            ),
                        ),
                        ("owner_kind", models.TextField(db_collation="C")),
                        ("owner_id", models.UUIDField()),
                        ("name", models.TextField(db_collation="C", default="")),
                        ("kept", models.JSONField(null=True)),
                        ("version", models.IntegerField()),
                        ("key_id", models.TextField(db_collation="C")),
                        ("payload", models.BinaryField()),
                        ("updated_at", models.DateTimeField(db_default=Now())),
                    ],
                    options={"db_table": "sealed_secrets"},
                ),
            ],
        ),
    ]  # fmt: skip
