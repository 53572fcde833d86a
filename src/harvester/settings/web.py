"""The portal's half of Django's settings: templates, static files, login, security headers."""
