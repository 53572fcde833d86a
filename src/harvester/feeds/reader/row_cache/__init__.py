"""The row cache: parsed rows of each source's last promoted file, so that the next run parses only new records.

`hashes` identifies records, `file` stores their rows, `reuse` takes rows from the cache while a file is parsed, and
`store` has one cache file for each source.
"""
