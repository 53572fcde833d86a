"""The only doors to the outside and to secrets."""
