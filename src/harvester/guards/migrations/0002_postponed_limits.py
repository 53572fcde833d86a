"""Rate limits can be postponed."""

from pathlib import Path

from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [("guards", "0001_initial")]
    operations = [migrations.RunSQL(Path(__file__).with_suffix(".sql").read_text())]
