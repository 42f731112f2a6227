"""What the first run after an installation costs compared with later ones, in processor time.

    python -m benchmarks.first_run dist/policyeng-*.whl --resources 40 --rounds 7

Each wheel is installed into an environment of its own, with the libraries that `requirements.lock` names. A cold run
has an empty home directory, as in CI; a warm one has the home directory of an earlier run. Rounds alternate between
them and between the wheels, and the least of each is what counts.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median

from benchmarks import estates
from benchmarks.processes import Launcher

ROOT = Path(__file__).parents[1]


def install(wheel: Path, folder: Path) -> Path:
    """Install a wheel into a new environment and return its programs."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True)
    pip = [sys.executable, "-m", "pip", f"--python={folder / 'bin' / 'python'}", "--disable-pip-version-check"]
    install = [*pip, "install", "--quiet", "--no-deps"]
    subprocess.run([*install, "--require-hashes", "-r", str(ROOT / "requirements.lock")], check=True)
    subprocess.run([*install, str(wheel)], check=True)
    return folder / "bin"


def run(launcher: Launcher, programs: Path, home: Path, snapshot: Path) -> float:
    """Check a snapshot, and return the milliseconds of processors."""
    environment = ["env", "-i", f"PATH={programs}:/usr/bin:/bin", f"HOME={home}"]
    command = [str(programs / "policyeng"), "check", str(snapshot), "--as-of", "2026-06-01T00:00:00Z"]
    return launcher.run([*environment, *command, "--format", "json"], (0, 1, 2))[1] * 1000


def main() -> None:
    """Measure, and print a line for each wheel."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("wheels", type=Path, nargs="+")
    parser.add_argument("--resources", type=int, default=40)
    parser.add_argument("--rounds", type=int, default=7)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        snapshot = folder / "snapshot.json"
        snapshot.write_bytes(estates.document(args.resources))
        programs = [install(wheel.resolve(), folder / f"venv{number}") for number, wheel in enumerate(args.wheels)]
        cold: list[list[float]] = [[] for _ in programs]
        warm: list[list[float]] = [[] for _ in programs]
        with Launcher(folder) as launcher:
            for round_ in range(args.rounds + 1):
                for number, place in enumerate(programs):
                    home = folder / f"home{number}.{round_}"
                    home.mkdir()
                    first = run(launcher, place, home, snapshot)
                    second = run(launcher, place, home, snapshot)
                    if round_:  # the first round fills the caches of the machine
                        cold[number].append(first)
                        warm[number].append(second)
        print(f"{args.resources} resources, ms of processor time, least (median) of {args.rounds} rounds")
        for number, wheel in enumerate(args.wheels):
            print(
                f"{wheel} ({wheel.stat().st_size / 1e6:.1f} MB): "
                f"cold {min(cold[number]):.0f} ({median(cold[number]):.0f}), "
                f"warm {min(warm[number]):.0f} ({median(warm[number]):.0f}), "
                f"cold/warm {min(cold[number]) / min(warm[number]):.2f}"
            )


if __name__ == "__main__":
    main()
