"""Bounds inside the functions that run with the owner's rights, as SQL in the file beside this one."""

from pathlib import Path

from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [("engine", "0002_named_writers")]

    operations = [migrations.RunSQL(Path(__file__).with_suffix(".sql").read_text(), migrations.RunSQL.noop)]
