"""Sessions that write for a job say so themselves, by their names; a job may have several of them."""

from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [("engine", "0001_initial")]

    operations = [
        migrations.RunSQL(
            "ALTER TABLE jobs DROP COLUMN writer_pid, DROP COLUMN writer_started",
            "ALTER TABLE jobs ADD COLUMN writer_pid integer, ADD COLUMN writer_started timestamptz",
            state_operations=[
                migrations.RemoveField("Job", "writer_pid"),
                migrations.RemoveField("Job", "writer_started"),
            ],
        ),
    ]
