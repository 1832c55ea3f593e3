"""A list of cells and probes, run one after the other in this process: in the guest, or on a host whose kernel has netem.

Each step is told on stdout as a line of JSON. The job's file holds a list of {cell or probe, folder}.
"""

import json
import os
import resource
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from testbed.cell import cell_from_json
from testbed.probe import probe_from_json, run_probe
from testbed.trial import RunOne, run_cell, run_safely


def run(job_file: str, before_each: Callable[[], None] = lambda: None, run_one: RunOne = run_cell) -> None:
    """Run every cell of the job on the fabric of `run_one`, and every probe; `before_each` is called before each."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)  # all clients live in this process; the usual 1024 are too few
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    for item in json.loads(Path(job_file).read_text()):
        task: Any = cell_from_json(item["cell"]) if "cell" in item else probe_from_json(item["probe"])
        one: Any = run_one if "cell" in item else run_probe

        def report(event: dict[str, Any], task_id: str = task.id) -> None:
            print(json.dumps({"cell": task_id, **event}), flush=True)

        before_each()
        report({"phase": "start"})
        facts = run_safely(one, task, Path(item["folder"]), report)
        os.sync()
        report({"phase": "done", "status": facts["status"]})


if __name__ == "__main__":
    run(sys.argv[1])
