"""A way to offers that are missing, written as SQL in the file beside this one."""

from pathlib import Path

from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [("catalog", "0004_staged_tokens")]

    operations = [migrations.RunSQL(Path(__file__).with_suffix(".sql").read_text(), "DROP INDEX offers_missing")]
