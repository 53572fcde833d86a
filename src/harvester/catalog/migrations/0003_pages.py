"""Presence, leads and attributes of products of pages, stock on backorder, and breakers."""

from pathlib import Path

from django.db import migrations

HERE = Path(__file__)
SQL = HERE.parents[1] / "sql"


class Migration(migrations.Migration):
    dependencies = [("catalog", "0002_scraped_sources"), ("runs", "0002_parts_by_day")]
    operations = [
        migrations.RunSQL(HERE.with_suffix(".sql").read_text()),
        migrations.RunSQL((SQL / "views_and_functions.sql").read_text()),
    ]
