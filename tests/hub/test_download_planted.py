"""Someone else who can write to the models folder put something where a download keeps its parts."""

import os
import random
from pathlib import Path

import pytest

from qwendesk.hub.download import download_file
from qwendesk.hub.download_control import DownloadControl, RetryPolicy
from qwendesk.hub.network import HubError, Network
from qwendesk.hub.remote import Hub
from tests.hub.hub_server import FakeHub
from tests.links import skip_without_links

REPO, NAME = "someone/Model-GGUF", "model-Q4_K_M.gguf"
CONTENT = random.Random(5).randbytes(50_001)
SECRET = b"what the user wrote"


@pytest.fixture
def target(tmp_path: Path) -> Path:
    target = tmp_path / "models" / NAME
    target.parent.mkdir()
    return target


@pytest.fixture
def diary(tmp_path: Path) -> Path:
    diary = tmp_path / "diary.txt"
    diary.write_bytes(SECRET)
    return diary


@pytest.fixture(autouse=True)
def model(fake_hub: FakeHub) -> None:
    fake_hub.add(REPO, NAME, CONTENT)


def download(fake_hub: FakeHub, target: Path) -> None:
    hub = Hub(Network(fake_hub.endpoint))
    file = hub.file(REPO, NAME)
    download_file(hub, file, target, lambda _: None, DownloadControl(), RetryPolicy(2, 0.001, 0.001))


def cut_off(fake_hub: FakeHub, target: Path) -> None:
    """A download that left its `.part` and its `.part.json`."""
    fake_hub.faults = ["cut:20000", "cut:0"] * 2
    with pytest.raises(HubError):
        download(fake_hub, target)
    fake_hub.faults = []


def link(path: Path, to: Path) -> None:
    skip_without_links(path.parent)
    path.symlink_to(to)


@pytest.mark.parametrize("ending", [".part", ".part.json", ".part.json.new"])
@pytest.mark.parametrize("resumed", [False, True], ids=["new", "resumed"])
def test_a_planted_link_is_not_followed(fake_hub, target, diary, ending, resumed):
    planted = target.with_name(NAME + ending)
    if resumed:
        cut_off(fake_hub, target)
        planted.unlink(missing_ok=True)
    link(planted, diary)

    download(fake_hub, target)

    assert target.read_bytes() == CONTENT
    assert diary.read_bytes() == SECRET
    assert [path.name for path in target.parent.iterdir() if path.is_file()] == [NAME]


def test_planted_lock_raises_error_and_creates_nothing(fake_hub, target, tmp_path):
    if not hasattr(os, "O_NOFOLLOW"):
        pytest.skip("locks cannot refuse links here")
    link(target.with_name(NAME + ".part.lock"), tmp_path / "created")

    with pytest.raises(HubError) as caught:
        download(fake_hub, target)

    assert caught.value.kind == "disk"
    assert not (tmp_path / "created").exists()


def test_hard_linked_file_keeps_its_content(fake_hub, target, diary):
    cut_off(fake_hub, target)
    planted = target.with_name(NAME + ".part")
    planted.unlink()
    os.link(diary, planted)

    download(fake_hub, target)

    assert target.read_bytes() == CONTENT
    assert diary.read_bytes() == SECRET


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes here")
@pytest.mark.parametrize("ending", [".part", ".part.json", ".part.json.new"])
def test_a_planted_pipe_does_not_hang(fake_hub, target, ending):
    cut_off(fake_hub, target)
    planted = target.with_name(NAME + ending)
    planted.unlink(missing_ok=True)
    os.mkfifo(planted)

    download(fake_hub, target)

    assert target.read_bytes() == CONTENT


def test_folder_at_target_path_raises_error(fake_hub, target):
    target.with_name(NAME + ".part").mkdir()

    with pytest.raises(HubError) as caught:
        download(fake_hub, target)

    assert caught.value.kind == "disk"
    assert target.with_name(NAME + ".part").is_dir()
