"""A list of cells as Compose projects, one after the other: testbed.job on the Docker fabric.

Its arguments are the job's file and the servers' images, in JSON.
"""

import json
import sys
from functools import partial

from compose.docker import run_cell
from testbed import job

if __name__ == "__main__":
    job.run(sys.argv[1], run_one=partial(run_cell, images=json.loads(sys.argv[2])))
