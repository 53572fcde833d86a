"""Reading the audit trail: one way for pages and commands."""

from datetime import datetime

from django.db.models import Q, QuerySet

from harvester.ops.models import AuditEvent

#: The newest first; events of one moment in the order in which they were written.
ORDER = ("-at", "-id")
#: What people and the system do; a test finds every verb that the code records. Others can be asked for by address.
VERBS = (
    "ACTIVATION_APPROVAL_REQUESTED",
    "ACTIVATION_APPROVED",
    "ACTIVATION_REJECTED",
    "ACTIVATION_REJECTION_REQUESTED",
    "API_KEY_CREATED",
    "API_KEY_REVOKED",
    "CORRECTION_CREATED",
    "CORRECTION_REVOKED",
    "CREDENTIAL_CHANGED",
    "DISPLAY_PRIMARY_SET",
    "DISPLAY_PRIMARY_UNSET",
    "EXPIRY_HOURS_CHANGED",
    "FEED_AUTO_DISABLED",
    "FEED_CREATED",
    "FEED_DELETED",
    "FEED_RETIRED",
    "FEED_STATUS_CHANGED",
    "FEED_TEST_REQUESTED",
    "FEED_UPDATED",
    "HOST_KEY_APPROVED",
    "INSECURE_TRANSPORT_SELECTED",
    "JOB_CANCELLED",
    "JOB_ENQUEUED",
    "JOB_RETRIED",
    "KEYS_ROTATED",
    "KEYS_ROTATION_BEGUN",
    "MANUAL_RUN_REQUESTED",
    "PRODUCT_CREATED",
    "PRODUCT_LINKED",
    "PRODUCT_REOPENED",
    "PRODUCT_SKIPPED",
    "RETAILER_CREATED",
    "RETAILER_UPDATED",
    "RUN_CANCELLED",
    "RUN_FILE_DOWNLOADED",
    "RUN_HELD",
    "RUN_HELD_ANEW",
    "RUN_IGNORED",
    "RUN_IGNORE_UNDONE",
    "RUN_PROMOTED",
    "SOURCE_CREATED",
    "SOURCE_UPDATED",
    "USER_ACTIVATED",
    "USER_CREATED",
    "USER_DEACTIVATED",
    "USER_LOGGED_IN",
    "USER_LOGGED_OUT",
    "USER_LOGIN_FAILED",
    "USER_LOGIN_THROTTLED",
    "USER_PASSWORD_CHANGED",
    "USER_ROLE_CHANGED",
)


def narrowed(
    events: QuerySet[AuditEvent],
    *,
    actor: str = "",
    verb: str = "",
    object_type: str = "",
    object_id: str = "",
    since: datetime | None = None,
    until: datetime | None = None,
) -> QuerySet[AuditEvent]:
    """Those of the events that fit everything that is given.

    Args:
        events: to choose from.
        actor: name or id of who did it.
        verb: what was done, see `VERBS`.
        object_type: what sort of thing it was done to, such as feed.
        object_id: to which one.
        since: the first moment that counts.
        until: the first moment that does not count any more.
    """
    wanted = {"verb": verb, "object_type": object_type, "object_id": object_id, "at__gte": since, "at__lt": until}
    chosen = events.filter(**{name: value for name, value in wanted.items() if value})
    return chosen.filter(Q(actor_name=actor) | Q(actor_id=actor)) if actor else chosen


def events() -> QuerySet[AuditEvent]:
    """All of them, the newest first."""
    return AuditEvent.objects.order_by(*ORDER)
