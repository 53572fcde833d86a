"""A lane can rest."""

from pathlib import Path

from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [("engine", "0001_initial")]
    operations = [migrations.RunSQL(Path(__file__).with_suffix(".sql").read_text())]
