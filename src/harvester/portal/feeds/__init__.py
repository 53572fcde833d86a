"""Affiliate feeds in the portal: the list, the pages of one feed, its forms and what may be done to it.

Nothing is decided here: every write is a verb of `harvester.feeds.verbs`.
"""
