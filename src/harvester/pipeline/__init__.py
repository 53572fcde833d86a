"""The way in that all kinds of sources share."""
