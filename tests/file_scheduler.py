"""A plugin of pytest: gives whole files to pytest-xdist's processes, and goes on when one of them has ended.

`--dist loadfile` alone waits for ever then: a new process gets what is left of the old one's files, and nothing more if
that is a single test or none, while pytest-xdist 3.8 gives more only when a test has been reported
(LoadScopeScheduling._reschedule).
"""

import pytest
from xdist.remote import Producer
from xdist.scheduler import LoadFileScheduling
from xdist.workermanage import WorkerController


class FileScheduler(LoadFileScheduling):
    """Gives a process files until it has two tests to run, or tells it that there are none."""

    def _reschedule(self, node: WorkerController) -> None:
        super()._reschedule(node)
        while not node.shutting_down and self._pending_of(self.assigned_work[node]) < 2:
            super()._reschedule(node)


def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> FileScheduler:
    return FileScheduler(config, log)
