"""Harvester: collects product offers and serves only what it can stand behind."""

import os

__version__ = "0.1.0"

# For polars, before anything imports it. Blocks of a catalog are read in parallel by Harvester's own threads; more of
# them within polars take memory and save no time.
os.environ.setdefault("POLARS_MAX_THREADS", "1")
# Its allocator keeps returned memory for so many milliseconds; blocks come faster: see `feeds.reader.allocator`.
os.environ.setdefault("_RJEM_MALLOC_CONF", "dirty_decay_ms:10000")
