"""One length limit for reasons, in the database too."""

from django.db import migrations

# Not checked for what was written under another limit before.
LIMITS = """
ALTER TABLE runs ADD CONSTRAINT decision_reason_length CHECK (char_length(decision_reason) <= 1000) NOT VALID;
ALTER TABLE runs ADD CONSTRAINT ignored_reason_length CHECK (char_length(ignored_reason) <= 1000) NOT VALID;
ALTER TABLE price_corrections ADD CONSTRAINT correction_reason_length CHECK (char_length(reason) <= 1000) NOT VALID;
"""


class Migration(migrations.Migration):
    dependencies = [("catalog", "0012_before_images")]

    operations = [migrations.RunSQL(LIMITS)]
