"""Advice: which scheduler to use for these machines and these jobs, and why to believe it."""
