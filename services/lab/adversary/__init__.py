"""The adversary: searches instances on which one scheduler loses most to another."""
