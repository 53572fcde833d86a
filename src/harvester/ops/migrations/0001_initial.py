"""Users, the audit log, alerts and API keys; all but the users are written as SQL in the file next to this one."""

from pathlib import Path

import django.contrib.auth.models
import django.contrib.auth.validators
import django.utils.timezone
from django.contrib.postgres.fields import ArrayField
from django.db import migrations, models
from django.db.models.functions import Lower

import harvester.kernel.ids


class Migration(migrations.Migration):
    initial = True
    dependencies = [("auth", "0012_alter_user_first_name_max_length"), ("engine", "0001_initial")]
    operations = [
        migrations.CreateModel(
            name="User",
            fields=[
                (
                    "id",
                    models.UUIDField(
                        default=harvester.kernel.ids.uuid7, editable=False, primary_key=True, serialize=False
                    ),
                ),
                (
                    "username",
                    models.CharField(
                        error_messages={"unique": "A user with that username already exists."},
                        help_text="Required. 150 characters or fewer. Letters, digits and @/./+/-/_ only.",
                        max_length=150,
                        unique=True,
                        validators=[django.contrib.auth.validators.UnicodeUsernameValidator()],
                        verbose_name="username",
                    ),
                ),
                ("password", models.CharField(max_length=128, verbose_name="password")),
                (
                    "role",
                    models.CharField(
                        choices=[
                            ("viewer", "Viewer: sees everything but secrets"),
                            ("operator", "Operator: runs, pauses, approves, retries"),
                            ("admin", "Admin: changes what exists and who may do what"),
                        ],
                        default="viewer",
                        max_length=16,
                    ),
                ),
                ("first_name", models.CharField(blank=True, max_length=150, verbose_name="first name")),
                ("last_name", models.CharField(blank=True, max_length=150, verbose_name="last name")),
                ("email", models.EmailField(blank=True, max_length=254, verbose_name="email address")),
                (
                    "is_active",
                    models.BooleanField(
                        default=True,
                        help_text="Designates whether this user should be treated as active. Unselect this instead of deleting accounts.",
                        verbose_name="active",
                    ),
                ),
                (
                    "is_staff",
                    models.BooleanField(
                        default=False,
                        help_text="Designates whether the user can log into this admin site.",
                        verbose_name="staff status",
                    ),
                ),
                (
                    "is_superuser",
                    models.BooleanField(
                        default=False,
                        help_text="Designates that this user has all permissions without explicitly assigning them.",
                        verbose_name="superuser status",
                    ),
                ),
                ("date_joined", models.DateTimeField(default=django.utils.timezone.now, verbose_name="date joined")),
                ("last_login", models.DateTimeField(blank=True, null=True, verbose_name="last login")),
                (
                    "groups",
                    models.ManyToManyField(
                        blank=True,
                        help_text="The groups this user belongs to. A user will get all permissions granted to each of their groups.",
                        related_name="user_set",
                        related_query_name="user",
                        to="auth.group",
                        verbose_name="groups",
                    ),
                ),
                (
                    "user_permissions",
                    models.ManyToManyField(
                        blank=True,
                        help_text="Specific permissions for this user.",
                        related_name="user_set",
                        related_query_name="user",
                        to="auth.permission",
                        verbose_name="user permissions",
                    ),
                ),
            ],
            options={
                "verbose_name": "user",
                "verbose_name_plural": "users",
                "db_table": "users",
                "abstract": False,
                # Two logins that differ only in case would look like one.
                "constraints": (models.UniqueConstraint(Lower("username"), name="users_username_in_any_letters"),),
            },
            managers=[("objects", django.contrib.auth.models.UserManager())],
        ),
        migrations.CreateModel(
            name="AuditEvent",
            fields=[
                ("id", models.BigIntegerField(primary_key=True, serialize=False)),
                ("at", models.DateTimeField()),
                ("actor_kind", models.TextField()),
                ("actor_id", models.TextField()),
                ("actor_name", models.TextField()),
                ("verb", models.TextField()),
                ("object_type", models.TextField()),
                ("object_id", models.TextField()),
                ("changed", ArrayField(models.TextField())),
                ("detail", models.JSONField()),
            ],
            options={"db_table": "audit_events", "managed": False},
        ),
        migrations.CreateModel(
            name="Alert",
            fields=[
                ("id", models.BigIntegerField(primary_key=True, serialize=False)),
                ("kind", models.TextField()),
                ("key", models.TextField()),
                ("severity", models.TextField()),
                ("title", models.TextField()),
                ("body", models.TextField()),
                ("detail", models.JSONField()),
                ("opened_at", models.DateTimeField()),
                ("last_seen_at", models.DateTimeField()),
                ("times", models.BigIntegerField()),
                ("resolved_at", models.DateTimeField(null=True)),
                ("resolved_note", models.TextField()),
                ("opened_delivered_at", models.DateTimeField(null=True)),
                ("resolved_delivered_at", models.DateTimeField(null=True)),
                ("delivery_error", models.TextField(null=True)),
            ],
            options={"db_table": "alerts", "managed": False},
        ),
        migrations.CreateModel(
            name="ApiKey",
            fields=[
                ("id", models.UUIDField(primary_key=True, serialize=False)),
                ("name", models.TextField()),
                ("prefix", models.TextField()),
                ("token_hash", models.TextField(unique=True)),
                ("scopes", ArrayField(models.TextField())),
                ("created_by", models.TextField()),
                ("created_at", models.DateTimeField()),
                ("expires_at", models.DateTimeField(null=True)),
                ("last_used_at", models.DateTimeField(null=True)),
                ("revoked_at", models.DateTimeField(null=True)),
                ("revoked_by", models.TextField(null=True)),
            ],
            options={"db_table": "api_keys", "managed": False},
        ),
        migrations.RunSQL(Path(__file__).with_suffix(".sql").read_text()),
    ]
