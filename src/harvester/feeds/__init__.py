"""Affiliate feeds: their settings, schedules, runs and gates, and the networks that they belong to."""
