"""How the files of runs end, which file each run fetched, and feeds that take their next file as it is."""

from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [("feeds", "0005_kept_parameters")]

    operations = [
        migrations.RunSQL(
            """
            ALTER TABLE feed_runs ADD COLUMN fetched_hash text, ADD COLUMN file_end text
                CHECK (file_end IN ('NEWLINE', 'PROVEN', 'LEFT_OUT', 'TAKEN'));
            ALTER TABLE feeds ADD COLUMN takes_file_as_is boolean NOT NULL DEFAULT false
            """,
            """
            ALTER TABLE feeds DROP COLUMN takes_file_as_is;
            ALTER TABLE feed_runs DROP COLUMN file_end, DROP COLUMN fetched_hash
            """,
        )
    ]
