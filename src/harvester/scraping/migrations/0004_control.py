"""Indexes for the scheduler, jobs of imports."""

from pathlib import Path
from typing import ClassVar

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies: ClassVar = [("scraping", "0003_judging")]
    operations: ClassVar = [
        migrations.AddField("scrapeimport", "job_id", models.BigIntegerField(null=True)),
        migrations.RunSQL(Path(__file__).with_suffix(".sql").read_text()),
    ]
