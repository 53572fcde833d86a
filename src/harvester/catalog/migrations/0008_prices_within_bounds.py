"""No correction makes a price zero or larger than an offer can hold, written as SQL in the file beside this one."""

from pathlib import Path

from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [("catalog", "0007_room_in_indexes")]

    operations = [migrations.RunSQL(Path(__file__).with_suffix(".sql").read_text())]
