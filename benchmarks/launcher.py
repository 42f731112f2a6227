"""Run commands for the harness from a small process: Linux counts the memory of the parent to a child's peak.

Reads one JSON list per line, the command with its working folder and output file in front; answers with
seconds, seconds of processors, peak memory in kB and exit code. Imports next to nothing.
"""

import json
import os
import subprocess
import sys
import time


def main() -> None:
    """Serve until standard input ends."""
    for line in sys.stdin:
        folder, output, *command = json.loads(line)
        with open(output, "wb") as out:  # noqa: PTH123  # pathlib costs memory that would count
            started = time.perf_counter()
            process = subprocess.Popen(command, cwd=folder, stdout=out, stderr=out, stdin=subprocess.DEVNULL)
            _, status, usage = os.wait4(process.pid, 0)
            seconds = time.perf_counter() - started
        process.returncode = os.waitstatus_to_exitcode(status)
        processor = usage.ru_utime + usage.ru_stime
        print(json.dumps([seconds, processor, usage.ru_maxrss, process.returncode]), flush=True)


if __name__ == "__main__":
    main()
