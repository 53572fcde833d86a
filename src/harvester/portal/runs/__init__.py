"""Runs in the portal: the list, the page of one run, and what people decide about it."""
