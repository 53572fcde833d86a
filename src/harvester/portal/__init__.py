"""The web interface: where operators live."""
