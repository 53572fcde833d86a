"""One rule for when offers disappear, written as SQL in the file next to this one."""

from pathlib import Path

from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [("catalog", "0009_staging_by_full_name")]

    operations = [migrations.RunSQL(Path(__file__).with_suffix(".sql").read_text())]
