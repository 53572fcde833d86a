"""Each secret is sealed for itself.

What was sealed as one document until now stays under the empty name, because nothing is opened by a migration. It is
split by whoever opens it next: a worker, or a rotation of keys.
"""

from django.db import migrations, models

_FORWARD = """
ALTER TABLE sealed_secrets
    ADD COLUMN name text COLLATE "C" NOT NULL DEFAULT '',
    ADD COLUMN kept jsonb,
    DROP CONSTRAINT sealed_secrets_pkey,
    ADD PRIMARY KEY (owner_kind, owner_id, name)
"""


class Migration(migrations.Migration):
    dependencies = [("guards", "0002_rate_limits")]
    operations = [
        migrations.RunSQL(
            _FORWARD,
            state_operations=[
                migrations.AddField("SealedSecret", "name", models.TextField(db_collation="C", default="")),
                migrations.AddField("SealedSecret", "kept", models.JSONField(null=True)),
                migrations.AlterField(
                    "SealedSecret",
                    "pk",
                    models.CompositePrimaryKey(
                        "owner_kind", "owner_id", "name", blank=True, editable=False, primary_key=True, serialize=False
                    ),
                ),
            ],
        ),
    ]
