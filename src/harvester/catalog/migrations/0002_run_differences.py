"""What held runs would change, told once, written as SQL in the file beside this one."""

from pathlib import Path

from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [("catalog", "0001_initial")]

    operations = [
        migrations.RunSQL(
            Path(__file__).with_suffix(".sql").read_text(),
            "DROP TABLE run_differences; DROP INDEX runs_by_status; DROP INDEX runs_by_outcome",
        ),
    ]
