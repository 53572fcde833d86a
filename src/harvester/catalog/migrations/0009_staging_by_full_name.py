"""The functions that run with the owner's rights name their tables in full, as SQL in the file beside this one."""

from pathlib import Path

from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [("catalog", "0008_prices_within_bounds")]

    operations = [migrations.RunSQL(Path(__file__).with_suffix(".sql").read_text(), migrations.RunSQL.noop)]
