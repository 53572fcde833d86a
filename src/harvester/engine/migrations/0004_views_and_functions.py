"""Views and functions as the app's current file has them."""

from pathlib import Path

from django.db import migrations

CURRENT = Path(__file__).parents[1] / "sql" / "views_and_functions.sql"


class Migration(migrations.Migration):
    dependencies = [("engine", "0003_bounded_functions")]

    operations = [migrations.RunSQL(CURRENT.read_text(), migrations.RunSQL.noop)]
