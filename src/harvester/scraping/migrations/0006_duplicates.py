"""What finding two pages of one product needs: see the SQL file."""

from pathlib import Path

from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [("scraping", "0005_fetching")]
    operations = [migrations.RunSQL(Path(__file__).with_suffix(".sql").read_text())]
