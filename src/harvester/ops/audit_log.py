"""Queries of the audit log, for portal and command line."""

from datetime import datetime

from django.db.models import Q, QuerySet

from harvester.ops.models import AuditEvent

#: Newest first.
ORDER = ("-at", "-id")
#: What people and the system do; a test compares this list with the code.
VERBS = (
    "ACTIVATION_APPROVAL_REQUESTED",
    "ACTIVATION_APPROVED",
    "ACTIVATION_REJECTED",
    "ACTIVATION_REJECTION_REQUESTED",
    "API_KEY_CREATED",
    "API_KEY_REVOKED",
    "CONNECTION_CREATED",
    "CONNECTION_RUN_REQUESTED",
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
    "QUARANTINE_DISMISSED",
    "RETAILER_CREATED",
    "RETAILER_UPDATED",
    "ROBOTS_ALLOWS_SOURCE",
    "ROBOTS_REFUSES_SOURCE",
    "RUN_CANCELLED",
    "RUN_FILE_DOWNLOADED",
    "RUN_HELD",
    "RUN_HELD_AGAIN",
    "RUN_IGNORED",
    "RUN_IGNORE_UNDONE",
    "RUN_PROMOTED",
    "SCRAPE_ADAPTER_CHOSEN",
    "SCRAPE_ADAPTER_DISABLED",
    "SCRAPE_ADAPTER_ENABLED",
    "SCRAPE_ENABLED",
    "SCRAPE_HINTS_REQUESTED",
    "SCRAPE_IMPORT_CANCELLED",
    "SCRAPE_IMPORT_CHOSEN",
    "SCRAPE_IMPORT_CREATED",
    "SCRAPE_IMPORT_ENDED",
    "SCRAPE_IMPORT_LINKED",
    "SCRAPE_IMPORT_STARTED",
    "SCRAPE_OVERRIDE_PROPOSED",
    "SCRAPE_OVERRIDE_RETIRED",
    "SCRAPE_OVERRIDE_SAVED",
    "SCRAPE_OVERRIDE_TESTED",
    "SCRAPE_OVERRIDE_USED",
    "SCRAPE_PAGE_REPROCESSED",
    "SCRAPE_PLACES_CHOSEN",
    "SCRAPE_PLACES_FORGOTTEN",
    "SCRAPE_ROBOTS_CHECK_REQUESTED",
    "SCRAPE_ROBOTS_SET",
    "SCRAPE_RUN_CHECKED",
    "SCRAPE_RUN_REQUESTED",
    "SCRAPE_SETTINGS_UPDATED",
    "SCRAPE_STOPPED",
    "SCRAPE_TARGETS_DELETED",
    "SCRAPE_TARGETS_REQUEUED",
    "SCRAPE_TARGETS_UPDATED",
    "SCRAPE_TARGET_ADDED",
    "SCRAPE_TARGET_DELETED",
    "SCRAPE_TARGET_UNPINNED",
    "SCRAPE_TARGET_UPDATED",
    "SCRAPE_TERMS_REVIEWED",
    "SCRAPE_URL_TRIED",
    "SOURCE_CREATED",
    "SOURCE_PAUSED",
    "SOURCE_RESUMED",
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


def filtered(
    events: QuerySet[AuditEvent],
    *,
    actor: str = "",
    verb: str = "",
    object_type: str = "",
    object_id: str = "",
    since: datetime | None = None,
    until: datetime | None = None,
) -> QuerySet[AuditEvent]:
    """Return the events that match all given filters.

    Args:
        events: to filter.
        actor: name or id of who did it.
        verb: what was done, see `VERBS`.
        object_type: the type of the changed object, such as feed.
        object_id: its id.
        since: only events at this time or later.
        until: only events before this time.
    """
    filters = {"verb": verb, "object_type": object_type, "object_id": object_id, "at__gte": since, "at__lt": until}
    found = events.filter(**{name: value for name, value in filters.items() if value})
    return found.filter(Q(actor_name=actor) | Q(actor_id=actor)) if actor else found


def events() -> QuerySet[AuditEvent]:
    """Return all events, newest first."""
    return AuditEvent.objects.order_by(*ORDER)
