"""Harvester: collects product offers and serves only what it can stand behind."""

__version__ = "0.1.0"
