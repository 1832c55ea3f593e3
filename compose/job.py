"""A list of cells as Compose projects, one after the other: testbed.job on the Docker fabric."""

import sys

from compose.docker import run_cell
from testbed import job

if __name__ == "__main__":
    job.run(sys.argv[1], run_one=run_cell)
