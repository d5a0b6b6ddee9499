"""Run in the Debian folder by `make windows-bundle-test`: the steps one after the other, each with a line."""

import os
import sys
import time
from pathlib import Path

from tools.setup.progress import elapsed
from tools.windows.bundle_test.desktop import Desktop, Failed
from tools.windows.bundle_test.steps import Trial


def main() -> int:
    """Return 0, or 1 if a step failed. The arguments are the folder for screenshots and the two installers.

    A step that fails does not end the trial, unless nothing can follow it: the installation and the first start.
    """
    pictures, older, current = map(Path, sys.argv[1:])
    trial = Trial(Desktop(Path(os.environ["WINEPREFIX"]), pictures), older, current)
    failures = []
    for number, (title, step) in enumerate(trial.steps(), 1):
        start = time.monotonic()
        try:
            said = step()
            outcome = f"works{f' ({said})' if said else ''}"
        except Failed as error:
            failures.append(f"{title}: {error}")
            outcome = f"FAILED: {error}"
        trial.desktop.picture(f"{number:02}")
        print(f"{number:2}. {title}: {outcome}, {elapsed(time.monotonic() - start)}", flush=True)
        if failures and number <= trial.FIRST_STEPS:
            break
    print(f"{len(failures)} faults." if failures else "The installer works.", flush=True)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
