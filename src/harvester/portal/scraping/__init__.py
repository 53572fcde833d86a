"""Scraping in the portal: shops, their pages, imports, adapters, quarantine and single addresses.

No rules are here: every write is a verb of `harvester.scraping.verbs`.
"""
