"""Two logins that differ in the case of letters only cannot be told apart."""

import django.db.models.functions.text
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("ops", "0004_api_keys")]

    operations = [
        migrations.AddConstraint(
            model_name="user",
            constraint=models.UniqueConstraint(
                django.db.models.functions.text.Lower("username"), name="users_username_in_any_letters"
            ),
        ),
    ]
