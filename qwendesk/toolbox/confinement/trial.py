"""Finds out whether this PC confines scripts by trying it: a script does what none may do, and all of it must fail.

Linux only.
"""

import json
import logging
import os
import platform
from pathlib import Path

from qwendesk.core import paths
from qwendesk.core.translation import tr
from qwendesk.toolbox.confinement.confined_run import Outcome, run_confined
from qwendesk.toolbox.confinement.sandbox import MEMORY_BYTES, PROCESSES, Sandbox, find_bwrap, find_python

_logger = logging.getLogger(__name__)

_RESTRICTION = Path("/proc/sys/kernel/apparmor_restrict_unprivileged_userns")
"""Holds 1 where AppArmor lets only programs with a profile of their own make a sandbox, as on Ubuntu from 24.04 on."""
_TRIAL_S = 20.0


async def find_sandbox() -> Sandbox | str:
    """Return the sandbox of this PC if it has been seen to confine, else a sentence that says why there is none."""
    if platform.machine() != "x86_64":
        return tr("Python runs only confined, and QwenDesk can't confine it on this kind of processor yet.")
    if os.geteuid() == 0:
        return tr("Python runs only confined, which QwenDesk doesn't do as root. Start it as an ordinary user.")
    sandbox = Sandbox(find_bwrap(), find_python())
    if not sandbox.bwrap:
        return tr("Python runs only confined. Install the package bubblewrap, then open this menu again.")
    if not sandbox.python:
        return tr("This PC has no Python of the system. Install the package python3, then open this menu again.")
    return await try_sandbox(sandbox) or sandbox


async def try_sandbox(sandbox: Sandbox) -> str:
    """Return "" if a script in the sandbox can do what it must and nothing else, or a sentence on what failed."""
    probes = (paths.resources_folder() / "sandbox" / "probes.py").read_text(encoding="utf-8")
    call = f"report({str(Path.home())!r}, {PROCESSES}, {MEMORY_BYTES})"
    try:
        outcome = await run_confined(f"{probes}\n\n{call}\n", sandbox, wall_s=_TRIAL_S)
    except OSError as error:
        return tr("Python runs only confined, and bubblewrap can't be started: {0}.", error.strerror or str(error))
    _logger.info("Trial of the sandbox: %s", outcome)
    return _judged(outcome)


def _judged(outcome: Outcome) -> str:
    if not outcome.has_started:
        if _is_restricted():
            return tr(
                "AppArmor doesn't let bubblewrap confine programs. The guide's page on tools says how to allow it."
            )
        said = next(iter(outcome.output.strip().splitlines()), "")
        return tr("This system doesn't let bubblewrap confine programs ({0}).", said)
    try:
        done = json.loads(outcome.output)
    except ValueError:
        done = None
    if done == ["work"] and outcome.status == 0:
        return ""
    _logger.warning("A confined test script did not end as it must: %s", outcome)
    return tr("A test script was not confined as it must be, so Python isn't offered. The log says more.")


def _is_restricted() -> bool:
    try:
        return _RESTRICTION.read_text().strip() == "1"
    except OSError:
        return False
