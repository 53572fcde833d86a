"""Staging tables in use are not cleared for another session, as SQL in the file beside this one."""

from pathlib import Path

from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [("catalog", "0010_expiry")]

    operations = [migrations.RunSQL(Path(__file__).with_suffix(".sql").read_text(), migrations.RunSQL.noop)]
