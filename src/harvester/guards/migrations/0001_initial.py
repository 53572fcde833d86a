"""The table of sealed secrets."""

from django.db import migrations, models
from django.db.models.functions import Now


class Migration(migrations.Migration):
    initial = True
    dependencies = []
    operations = [
        migrations.CreateModel(
            name="SealedSecret",
            fields=[
                (
                    "pk",
                    models.CompositePrimaryKey(
                        "owner_kind", "owner_id", blank=True, editable=False, primary_key=True, serialize=False
                    ),
                ),
                ("owner_kind", models.TextField(db_collation="C")),
                ("owner_id", models.UUIDField()),
                ("version", models.IntegerField()),
                ("key_id", models.TextField(db_collation="C")),
                ("payload", models.BinaryField()),
                ("updated_at", models.DateTimeField(db_default=Now())),
            ],
            options={"db_table": "sealed_secrets"},
        ),
    ]
