"""A list of cells, run one after the other in this process: in the guest, or on a host whose kernel has netem.

Each step is told on stdout as a line of JSON. The job's file holds a list of {cell, folder}.
"""

import json
import os
import resource
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from testbed.cell import cell_from_json
from testbed.trial import RunOne, run_cell, run_cell_safely


def run(job_file: str, before_each: Callable[[], None] = lambda: None, run_one: RunOne = run_cell) -> None:
    """Run every cell of the job on the fabric of `run_one`; `before_each` is called before each."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)  # all clients live in this process; the usual 1024 are too few
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    for item in json.loads(Path(job_file).read_text()):
        cell = cell_from_json(item["cell"])

        def report(event: dict[str, Any], cell_id: str = cell.id) -> None:
            print(json.dumps({"cell": cell_id, **event}), flush=True)

        before_each()
        report({"phase": "start"})
        facts = run_cell_safely(cell, Path(item["folder"]), report, run_one)
        os.sync()
        report({"phase": "done", "status": facts["status"]})


if __name__ == "__main__":
    run(sys.argv[1])
