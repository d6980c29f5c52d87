import shared  # noqa: F401  what it sets has to be set before any library is imported
