"""Downloads through the real huggingface_hub from a server with faults: right, resumed, or reported."""

import errno
import random
import ssl
from pathlib import Path

import httpx2
import pytest

from qwendesk.core import files
from qwendesk.core.files import locked
from qwendesk.hub import download_part
from qwendesk.hub.download import FileProgress, download_file
from qwendesk.hub.download_control import DownloadControl, RetryPolicy
from qwendesk.hub.download_part import part_of
from qwendesk.hub.network import HubError, Network
from qwendesk.hub.remote import Hub
from tests.hub.hub_server import COMMIT, FakeHub

REPO, NAME = "someone/Model-GGUF", "model-Q4_K_M.gguf"
CONTENT = random.Random(1).randbytes(300_001)
QUICK = RetryPolicy(tries=4, first_wait_s=0.001, longest_wait_s=0.001)


@pytest.fixture
def target(tmp_path: Path) -> Path:
    return tmp_path / REPO / NAME


@pytest.fixture(autouse=True)
def model(fake_hub: FakeHub) -> None:
    fake_hub.add(REPO, NAME, CONTENT)


def fetch(
    fake_hub: FakeHub, target: Path, *, token: str = "", control: DownloadControl | None = None, stall_s: float = 30
):
    seen: list[FileProgress] = []
    hub = Hub(Network(fake_hub.endpoint, token, stall_s=stall_s))
    file = hub.file(REPO, NAME)
    download_file(hub, file, target, seen.append, control or DownloadControl(), QUICK)
    return seen


def trouble_of_fetch(fake_hub: FakeHub, target: Path, **options) -> HubError:
    with pytest.raises(HubError) as caught:
        fetch(fake_hub, target, **options)
    assert not target.exists()
    return caught.value


def left_over(target: Path) -> list[str]:
    return sorted(path.name for path in target.parent.iterdir() if path.is_file() and path != target)


def test_download_leaves_only_the_file(fake_hub, target):
    seen = fetch(fake_hub, target)
    assert target.read_bytes() == CONTENT
    assert left_over(target) == []
    assert seen[-1] == FileProgress("downloading", len(CONTENT))
    note = target.parent / ".cache" / "huggingface" / "download" / f"{NAME}.metadata"
    assert note.read_text().splitlines()[0] == COMMIT


@pytest.mark.parametrize(
    "faults",
    [
        ["cut:0"],
        ["cut:1", "cut:100000", "cut:299999"],
        ["cut:300000"],
        ["cut:50000", "ignores-range,cut:70000", "ignores-range"],
        ["cut:50000", "403", "cut:10", "403"],
        ["429", "503", "cut:7", "500", "429"],
        ["no-length-shorter", "shorter"],
        ["cut:1000", "longer"],
        ["longer"],
        ["wrong-bytes"],
        ["cut:9", "wrong-bytes"],
        ["cut:1000", "416"],
    ],
    ids=" ".join,
)
def test_download_survives_a_faulty_server(fake_hub, target, faults):
    fake_hub.faults = list(faults)
    fetch(fake_hub, target)
    assert target.read_bytes() == CONTENT
    assert left_over(target) == []
    assert fake_hub.faults == []


def test_connection_cut_at_any_byte_is_resumed(fake_hub, target):
    cuts = random.Random(2).sample(range(len(CONTENT)), 12)
    for cut in cuts:
        fake_hub.faults = [f"cut:{cut}"]
        fake_hub.count_anew()
        fetch(fake_hub, target)
        assert target.read_bytes() == CONTENT
        assert fake_hub.sent_bytes == len(CONTENT)  # what was there was not fetched again
        target.unlink()


def test_repeated_errors_are_reported_and_the_part_is_kept(fake_hub, target):
    fake_hub.faults, fake_hub.always = ["cut:100000"], "503"
    trouble = trouble_of_fetch(fake_hub, target)
    assert trouble.kind == "busy"
    assert part_of(target).read_bytes() == CONTENT[:100_000]
    fake_hub.always = ""
    fake_hub.count_anew()
    fetch(fake_hub, target)
    assert target.read_bytes() == CONTENT
    assert fake_hub.sent_bytes == len(CONTENT) - 100_000


def test_wrong_bytes_never_get_the_final_name(fake_hub, target):
    target.parent.mkdir(parents=True)
    fake_hub.always = "wrong-bytes"
    assert trouble_of_fetch(fake_hub, target).kind == "hash_mismatch"
    assert left_over(target) == []


def test_the_old_file_stays_until_the_new_one_is_verified(fake_hub, target):
    target.parent.mkdir(parents=True)
    target.write_bytes(b"old but good")
    fake_hub.always = "wrong-bytes"
    with pytest.raises(HubError):
        fetch(fake_hub, target)
    assert target.read_bytes() == b"old but good"
    fake_hub.always = ""
    fetch(fake_hub, target)
    assert target.read_bytes() == CONTENT


def test_verified_file_is_not_downloaded_again(fake_hub, target):
    fetch(fake_hub, target)
    fake_hub.seen.clear()
    fetch(fake_hub, target)
    assert fake_hub.requests("GET", "store") == []


def test_changed_etag_discards_the_part(fake_hub, target):
    fake_hub.faults = ["cut:1000"]
    fake_hub.on_sent = lambda _: fake_hub.etag_of.update({NAME: "f" * 64})
    assert trouble_of_fetch(fake_hub, target).kind == "changed"
    assert left_over(target) == []


def test_part_of_another_version_is_not_used(fake_hub, target):
    fake_hub.faults, fake_hub.always = ["cut:100000"], "503"
    trouble_of_fetch(fake_hub, target)
    newer = fake_hub.add(REPO, NAME, CONTENT[::-1])
    fake_hub.always = ""
    fetch(fake_hub, target)
    assert target.read_bytes() == newer


def test_damaged_part_is_downloaded_again(fake_hub, target):
    fake_hub.faults, fake_hub.always = ["cut:100000"], "503"
    trouble_of_fetch(fake_hub, target)
    part_of(target).write_bytes(bytes(100_000))
    fake_hub.always = ""
    fetch(fake_hub, target)
    assert target.read_bytes() == CONTENT


def test_only_synced_bytes_count_after_power_loss(fake_hub, target, monkeypatch):
    fake_hub.faults, fake_hub.always = ["cut:100000"], "503"
    trouble_of_fetch(fake_hub, target)
    monkeypatch.setattr(download_part.psutil, "boot_time", lambda: 4e9)
    fake_hub.always = ""
    fake_hub.count_anew()
    fetch(fake_hub, target)
    assert target.read_bytes() == CONTENT
    assert fake_hub.sent_bytes == len(CONTENT)


@pytest.mark.parametrize(("status", "kind"), [(401, "denied"), (403, "denied"), (404, "not_found")])
def test_refusal_by_the_endpoint_is_not_retried(fake_hub, target, status, kind):
    fake_hub.head_faults = [status] * 9
    assert trouble_of_fetch(fake_hub, target).kind == kind
    assert len(fake_hub.requests("HEAD")) == 1


def test_gated_error_says_where_to_accept_the_terms(fake_hub, target):
    fake_hub.gated.add(REPO)
    trouble = trouble_of_fetch(fake_hub, target)
    assert trouble.kind == "gated"
    assert f"{fake_hub.endpoint}/{REPO}" in trouble.sentence
    fetch(fake_hub, target, token="good")
    assert target.read_bytes() == CONTENT


def test_token_is_sent_to_the_endpoint_only(fake_hub, target):
    fake_hub.faults = ["cut:10", "403"]
    fetch(fake_hub, target, token="secret")
    with_token = {path.split("/")[0] for _, path, headers in fake_hub.seen if "Authorization" in headers}
    assert with_token == {"endpoint"}
    assert fake_hub.requests("GET", "store")


def test_small_file_is_verified_by_its_git_hash(fake_hub, target):
    fake_hub.plain.add(NAME)
    fake_hub.faults = ["cut:5", "wrong-bytes"]
    fetch(fake_hub, target)
    assert target.read_bytes() == CONTENT


def test_stalled_connection_is_dropped_and_resumed(fake_hub, target):
    fake_hub.faults = ["stall"]
    fetch(fake_hub, target, stall_s=0.2)
    assert target.read_bytes() == CONTENT


def test_stop_ends_a_waiting_download(fake_hub, target):
    control = DownloadControl()
    fake_hub.faults = ["stall"]
    fake_hub.on_sent = lambda total: total > 20_000 and control.stop()
    assert trouble_of_fetch(fake_hub, target, control=control).kind == "stopped"
    fetch(fake_hub, target)
    assert target.read_bytes() == CONTENT


def test_missing_disk_space_is_reported_in_bytes(fake_hub, target, monkeypatch):
    monkeypatch.setattr(download_part, "free_bytes", lambda _folder: 1000)
    trouble = trouble_of_fetch(fake_hub, target)
    assert trouble.kind == "no_space"
    assert "but 292 KB are missing" in trouble.sentence
    assert fake_hub.requests("GET", "store") == []


def test_disk_filling_up_keeps_the_part(fake_hub, target, monkeypatch):
    class Full(download_part.PartFile):
        def write(self, piece: bytes) -> None:
            if self.n_bytes > 100_000:
                raise download_part.disk_error(OSError(errno.ENOSPC, "full"), self.target, 1)
            super().write(piece)

    with monkeypatch.context() as full:
        full.setattr("qwendesk.hub.download.PartFile", Full)
        assert trouble_of_fetch(fake_hub, target).kind == "no_space"
    fetch(fake_hub, target)
    assert target.read_bytes() == CONTENT
    asked = [headers["Range"] for _method, _path, headers in fake_hub.seen if "Range" in headers]
    assert int(asked[-1].removeprefix("bytes=").split("-")[0]) >= 100_000


def refuse_to_replace(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """As Windows does while the file of that name is open."""
    replace = Path.replace

    def refused(source: Path, to: Path) -> Path:
        if to.name == name:
            raise PermissionError(errno.EACCES, "Access is denied", str(to))
        return replace(source, to)

    monkeypatch.setattr(files, "_LOCKS_OPEN_FILES", True)
    monkeypatch.setattr(files, "_PAUSE_S", 0.001)
    monkeypatch.setattr(files, "sleep", lambda _seconds: None)
    monkeypatch.setattr(Path, "replace", refused)


def test_loaded_file_is_replaced_after_eject_without_new_download(fake_hub, target, monkeypatch):
    target.parent.mkdir(parents=True)
    target.write_bytes(b"old and loaded")
    with monkeypatch.context() as loaded:
        refuse_to_replace(loaded, target.name)
        with pytest.raises(HubError, match=r"in use, probably by the loaded model\. Eject the model") as caught:
            fetch(fake_hub, target)
    assert caught.value.kind == "locked"
    assert target.read_bytes() == b"old and loaded"
    fake_hub.count_anew()
    fetch(fake_hub, target)
    assert target.read_bytes() == CONTENT
    assert fake_hub.sent_bytes == 0
    assert left_over(target) == []


def test_unwritable_progress_file_does_not_end_download(fake_hub, target, monkeypatch, caplog):
    write = download_part.PartFile._write_sidecar

    def refused(part: download_part.PartFile, synced_bytes: int) -> None:
        if synced_bytes:
            raise PermissionError(errno.EACCES, "Access is denied", "sidecar")
        write(part, synced_bytes)

    monkeypatch.setattr(download_part.PartFile, "_write_sidecar", refused)
    monkeypatch.setattr(download_part, "_SYNC_S", 0)
    fetch(fake_hub, target)
    assert target.read_bytes() == CONTENT
    assert left_over(target) == []
    assert "could not be brought up to date" in caplog.text


def test_two_downloads_never_write_the_same_file(fake_hub, target):
    target.parent.mkdir(parents=True)
    with locked(part_of(target)):
        assert trouble_of_fetch(fake_hub, target).kind == "locked"
    fetch(fake_hub, target)
    assert left_over(target) == []


@pytest.mark.parametrize(
    ("error", "n_tries"),
    [
        (ssl.SSLCertVerificationError("certificate verify failed: self-signed certificate"), 1),
        (ssl.SSLCertVerificationError("certificate verify failed: certificate has expired"), 1),
        (httpx2.ProxyError("407 Proxy Authentication Required"), 1),
        (httpx2.ProxyError("403 Forbidden"), 1),
        (httpx2.UnsupportedProtocol("Request URL has an unsupported protocol"), 1),
        (httpx2.ProxyError("502 Bad Gateway"), QUICK.tries),
        (OSError("Temporary failure in name resolution"), QUICK.tries),
    ],
)
def test_what_lasts_is_not_tried_again(fake_hub, target, error, n_tries, monkeypatch):
    tries = []

    def fail(*_arguments):
        tries.append(error)
        if isinstance(error, httpx2.TransportError):
            raise error
        raise httpx2.ConnectError(str(error)) from error

    monkeypatch.setattr(Hub, "locate", fail)
    assert trouble_of_fetch(fake_hub, target).kind == "no_connection"
    assert len(tries) == n_tries


def test_offline_makes_no_connection(fake_hub, target):
    hub = Hub(Network(fake_hub.endpoint))
    file = hub.file(REPO, NAME)
    fake_hub.seen.clear()
    offline = Hub(Network(fake_hub.endpoint, offline=True))
    for ask in (
        lambda: offline.files(REPO),
        lambda: offline.search("x"),
        lambda: download_file(offline, file, target, lambda _: None, DownloadControl(), QUICK),
    ):
        with pytest.raises(HubError) as caught:
            ask()
        assert caught.value.kind == "offline"
    assert fake_hub.seen == []
