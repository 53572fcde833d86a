"""What an ignored run gives back and what it refuses, written as SQL in the file next to this one."""

from pathlib import Path

from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [("catalog", "0011_staging_in_use")]

    operations = [migrations.RunSQL(Path(__file__).with_suffix(".sql").read_text(), migrations.RunSQL.noop)]
