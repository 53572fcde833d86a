"""Affiliate feeds in the portal: the list, the pages of one feed, its forms and its buttons.

No rules are here: every write is a verb of `harvester.feeds.verbs`.
"""
