"""The engine's tables, written as SQL in the file beside this one."""

from pathlib import Path

from django.db import migrations


class Migration(migrations.Migration):
    initial = True
    dependencies = []
    operations = [
        migrations.RunSQL(
            Path(__file__).with_suffix(".sql").read_text(),
            "DROP TABLE jobs, job_events, job_lanes, job_lane_wakeups, periodic_jobs",
        ),
    ]
