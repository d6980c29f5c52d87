"""Traces: workloads that were recorded elsewhere, read as tasks.

A file goes through in blocks, so that one larger than memory works: `lines` cuts it, `delimited`,
`swf`, `wfcommons` and `parquet` make columns of it, `translate` turns those into tasks by the rules
of `mapping`, and `report` keeps account of what was skipped or mended on the way.
"""
