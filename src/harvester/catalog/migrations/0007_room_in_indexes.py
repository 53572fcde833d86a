"""Room for the second version of every offer in the two indexes whose keys never change.

A change of all prices gives each row a new version while the old one is still needed. In pages that are full, the
server looks for versions that it may drop, finds none and splits the page: an eighth of the promotion.
"""

from django.db import migrations

INDEXES = ("offers_pkey", "offers_newest")


class Migration(migrations.Migration):
    dependencies = [("catalog", "0006_offer_words")]

    operations = [
        migrations.RunSQL(f"ALTER INDEX {name} SET (fillfactor = 50)", f"ALTER INDEX {name} RESET (fillfactor)")
        for name in INDEXES
    ]
