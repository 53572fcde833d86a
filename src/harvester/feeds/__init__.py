"""Affiliate feeds: what is fetched from where and when, who decides what, and the networks that feeds belong to."""
