"""Template tags of the portal."""
