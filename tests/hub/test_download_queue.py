"""The download queue, against a real server: order, pause, resume, cancel, restart, progress."""

import random
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from qwendesk.hub.download_control import RetryPolicy
from qwendesk.hub.download_plan import plan_download
from qwendesk.hub.download_queue import DownloadQueue
from qwendesk.hub.network import Network
from qwendesk.hub.remote import Hub
from tests.hub.hub_server import FakeHub

REPO = "someone/Model-4B-GGUF"
NAMES = ["a.gguf", "b.gguf", "c.gguf"]
QUICK = RetryPolicy(tries=3, first_wait_s=0.001, longest_wait_s=0.001)


class Desk:
    """A queue with what it needs, as the app has it."""

    def __init__(self, fake_hub: FakeHub, folder: Path) -> None:
        self.fake_hub, self.folder = fake_hub, folder
        self.changed = threading.Condition()
        self.queue = self.new_queue()

    def new_queue(self) -> DownloadQueue:
        self.queue = DownloadQueue(self.folder / "queue.json", self.hub, retry_policy=QUICK)
        self.queue.subscribe(self._on_change)
        return self.queue

    def hub(self) -> Hub:
        return Hub(Network(self.fake_hub.endpoint))

    def add(self, name: str) -> str:
        return self.queue.add(plan_download(self.hub(), REPO, name, with_mmproj=True).files, self.folder)

    def target(self, name: str) -> Path:
        return self.folder / REPO / name

    def states(self) -> list[str]:
        return [item.saved.state for item in self.queue.items]

    def wait(self, condition: Callable[[], bool]) -> None:
        with self.changed:
            assert self.changed.wait_for(condition, 120), self.states()

    def _on_change(self, _identity: str) -> None:
        with self.changed:
            self.changed.notify_all()


@pytest.fixture
def desk(fake_hub: FakeHub, tmp_path: Path) -> Iterator[Desk]:
    for number, name in enumerate(NAMES):
        fake_hub.add(REPO, name, random.Random(number).randbytes(200_000))
    desk = Desk(fake_hub, tmp_path)
    yield desk
    fake_hub.hold.set()
    desk.queue.close()


def stalled(desk: Desk, number: int) -> Callable[[], bool]:
    """Whether so many downloads have got their first bytes and hang."""
    return lambda: sum(item.phase == "downloading" and item.n_done > 0 for item in desk.queue.items) >= number


def test_downloads_run_two_at_a_time_in_order(desk):
    desk.fake_hub.always = "stall"
    for name in NAMES:
        desk.add(name)
    desk.queue.start()
    desk.wait(stalled(desk, 2))
    assert desk.states() == ["running", "running", "queued"]
    desk.fake_hub.hold.set()
    desk.wait(lambda: desk.states() == ["done"] * 3)
    assert all(desk.target(name).read_bytes() == desk.fake_hub.repos[REPO][name] for name in NAMES)
    assert desk.queue.total.n_bytes == 0


def test_paused_download_yields_to_the_next_and_resumes(desk):
    desk.fake_hub.faults = ["stall", "stall"]
    first, _, _ = (desk.add(name) for name in NAMES)
    desk.queue.start()
    desk.wait(stalled(desk, 2))
    desk.queue.pause(first)
    desk.wait(lambda: desk.states()[2] == "done")
    item = desk.queue.items[0]
    assert (item.saved.state, item.bytes_per_s) == ("paused", 0)
    assert 0 < item.n_done < item.saved.n_bytes
    assert desk.queue.total.n_bytes == 400_000
    desk.fake_hub.hold.set()
    desk.queue.resume(first)
    desk.wait(lambda: desk.states() == ["done"] * 3)


def test_cancelled_download_leaves_no_files(desk):
    desk.fake_hub.always = "stall"
    first = desk.add(NAMES[0])
    desk.queue.start()
    desk.wait(stalled(desk, 1))
    desk.queue.cancel(first)
    assert desk.queue.items == ()
    desk.queue.close()
    assert [path for path in desk.target(NAMES[0]).parent.iterdir() if path.is_file()] == []


def test_the_order_can_be_changed_and_survives_a_restart(desk):
    identities = [desk.add(name) for name in NAMES]
    desk.queue.move(identities[2], 0)
    desk.queue.pause(identities[0])
    again = desk.new_queue()
    assert [item.saved.id for item in again.items] == [identities[2], identities[0], identities[1]]
    assert desk.states() == ["queued", "paused", "queued"]


def test_a_split_set_with_its_mmproj_is_one_item(desk):
    parts = [f"Q8/m-0000{part}-of-00002.gguf" for part in (1, 2)]
    for name in (*parts, "mmproj-F16.gguf", "mmproj-9B-F16.gguf"):
        desk.fake_hub.add(REPO, name, name.encode() * 100)
    desk.add(parts[0])
    desk.queue.start()
    desk.wait(lambda: desk.states() == ["done"])
    (item,) = desk.queue.items
    assert item.n_done == item.saved.n_bytes == sum(map(len, (*parts, "mmproj-F16.gguf"))) * 100
    assert all(desk.target(name).is_file() for name in (*parts, "mmproj-F16.gguf"))


def test_same_download_is_queued_once(desk):
    assert desk.add(NAMES[0]) == desk.add(NAMES[0])
    assert len(desk.queue.items) == 1


def test_shared_mmproj_is_downloaded_by_one_item_at_a_time(desk):
    desk.fake_hub.add(REPO, "mmproj-F16.gguf", bytes(100_000))
    desk.fake_hub.always = "stall"
    for name in NAMES[:2]:
        desk.add(name)
    desk.queue.start()
    desk.wait(stalled(desk, 1))
    assert desk.states() == ["running", "queued"]
    desk.fake_hub.hold.set()
    desk.wait(lambda: desk.states() == ["done"] * 2)


def test_models_with_a_present_mmproj_download_in_parallel(desk):
    content = desk.fake_hub.add(REPO, "mmproj-F16.gguf", bytes(100_000))
    desk.target("mmproj-F16.gguf").parent.mkdir(parents=True)
    desk.target("mmproj-F16.gguf").write_bytes(content)
    desk.fake_hub.always = "stall"
    for name in NAMES[:2]:
        desk.add(name)
    desk.queue.start()
    desk.wait(stalled(desk, 2))
    desk.fake_hub.hold.set()
    desk.wait(lambda: desk.states() == ["done"] * 2)


def test_held_downloads_wait_for_start_and_reconnecting_resumes_them(desk):
    desk.fake_hub.faults = ["stall", "stall"]
    desk.add(NAMES[0])
    desk.queue.start()
    desk.wait(stalled(desk, 1))
    desk.queue.reconnect()
    desk.wait(lambda: len(desk.fake_hub.requests("GET", "store")) == 2)
    desk.wait(stalled(desk, 1))
    desk.queue.hold()
    desk.wait(lambda: desk.states() == ["queued"])
    desk.queue.start()
    desk.wait(lambda: desk.states() == ["done"])


def test_unknown_ids_are_ignored(desk):
    first = desk.add(NAMES[0])
    desk.queue.cancel(first)
    for act in (desk.queue.cancel, desk.queue.pause, desk.queue.resume, lambda each: desk.queue.move(each, 0)):
        act(first)
    assert desk.queue.items == ()
