"""The way in that all kinds of sources share."""

import os

# Blocks are read side by side by threads of this house. More of them within polars take memory and save no time, and it
# asks for their number when it is imported.
os.environ.setdefault("POLARS_MAX_THREADS", "1")
# Its allocator keeps for so many milliseconds what it was given back; blocks come faster (see memory).
os.environ.setdefault("_RJEM_MALLOC_CONF", "dirty_decay_ms:10000")
