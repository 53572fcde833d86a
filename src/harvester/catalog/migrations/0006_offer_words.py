"""The words of offers in a table of their own, written as SQL in the file beside this one."""

from pathlib import Path

from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [("catalog", "0005_missing_offers")]

    operations = [migrations.RunSQL(Path(__file__).with_suffix(".sql").read_text())]
