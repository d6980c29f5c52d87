"""Importers that write platform files, and a check of measured times."""
