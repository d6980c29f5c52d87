"""Traces: recorded workloads, read as tasks.

A file is read in blocks, so it may be larger than memory: `formats` turns it into columns,
`to_tasks` turns columns into tasks by the rules of `mapping`, and `problem_report` counts the lines
that were skipped or adjusted.
"""
