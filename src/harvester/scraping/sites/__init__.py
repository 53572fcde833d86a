"""The sites that are registered, one file each."""
