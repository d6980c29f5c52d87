"""Platforms: machines as YAML files, with measured task times or without. See docs/platforms.md."""
