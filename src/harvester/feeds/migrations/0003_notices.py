"""Warnings about runs as a whole."""

from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [("feeds", "0002_feed_days")]

    operations = [
        migrations.RunSQL(
            "ALTER TABLE feed_runs ADD COLUMN notices jsonb NOT NULL DEFAULT '[]'",
            "ALTER TABLE feed_runs DROP COLUMN notices",
        )
    ]
