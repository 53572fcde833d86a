"""Parts of runs, by day."""

from pathlib import Path

from django.db import migrations, models

HERE = Path(__file__)


class Migration(migrations.Migration):
    dependencies = [("runs", "0001_initial")]
    operations = [
        migrations.AddField("runpart", "begun_at", models.DateTimeField()),
        migrations.AddField("runpart", "found", models.JSONField(null=True)),
        migrations.AddField("runpart", "page", models.TextField(null=True)),
        migrations.AddField("runpart", "version", models.TextField(null=True)),
        migrations.AddField("runpart", "judged_at", models.DateTimeField(null=True)),
        migrations.AlterField("runpart", "job_id", models.BigIntegerField(null=True)),
        migrations.RunSQL((HERE.parents[1] / "sql" / "functions.sql").read_text()),
        migrations.RunSQL(HERE.with_suffix(".sql").read_text()),
    ]
