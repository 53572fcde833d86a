"""The row cache: parsed rows of each source's last promoted file, so that the next run parses only what is new.

`hashes` finds records that were read before, `writer` and `reader` keep and find their rows, `reuse` takes them over
while a file is parsed, and `store` has one cache for each source.
"""
