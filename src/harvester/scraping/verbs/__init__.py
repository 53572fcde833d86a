"""Writes to pages and to the scraping of sources by people.

Each verb has an actor and is one transaction, which includes its audit event. Its docstring names the role that it
needs; callers enforce it. A verb locks the source before its pages, like a run does.
"""

from harvester.scraping.verbs.import_links import LineLink, link_lines
from harvester.scraping.verbs.imports import cancel_import, choose, create_import, import_from_feed, start_import
from harvester.scraping.verbs.requests import request, requeue_stale, run_now
from harvester.scraping.verbs.sources import (
    check_robots,
    choose_adapter,
    enable,
    hide,
    record_review,
    set_robots_compliant,
    show,
    stop,
    stop_all,
    update_settings,
)
from harvester.scraping.verbs.targets import (
    add_target,
    delete_target,
    delete_targets,
    pause_target,
    replace_moved,
    resume_target,
    update_target,
    update_targets,
)

__all__ = [
    "LineLink",
    "add_target",
    "cancel_import",
    "check_robots",
    "choose",
    "choose_adapter",
    "create_import",
    "delete_target",
    "delete_targets",
    "enable",
    "hide",
    "import_from_feed",
    "link_lines",
    "pause_target",
    "record_review",
    "replace_moved",
    "request",
    "requeue_stale",
    "resume_target",
    "run_now",
    "set_robots_compliant",
    "show",
    "start_import",
    "stop",
    "stop_all",
    "update_settings",
    "update_target",
    "update_targets",
]
