"""Where things lie: the checkout, and the cache that outlives it."""

import os
from pathlib import Path

PROJECT = Path(__file__).resolve().parent.parent

CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "pubsub-testbed"
"""The guest's kernel and newer tools, built or fetched once."""
