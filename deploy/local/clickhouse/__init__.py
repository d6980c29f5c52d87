"""The real ClickHouse engine in one process, served on ClickHouse's own HTTP protocol."""
