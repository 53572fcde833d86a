"""Feeds of former partners, which keep their runs and prices and nothing that could run."""

from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [("feeds", "0006_file_end")]

    operations = [
        migrations.RunSQL(
            """
            ALTER TABLE feeds ADD COLUMN retired_at timestamptz,
                ADD CONSTRAINT retired_feeds_do_not_run CHECK (retired_at IS NULL OR status IN ('PAUSED', 'DISABLED')),
                ADD CONSTRAINT retired_feeds_have_no_credentials CHECK (retired_at IS NULL OR secret_fields = '[]')
            """,
            "ALTER TABLE feeds DROP COLUMN retired_at",
        )
    ]
