"""Files are looked at when they appear, read to the last byte when asked, and compared with a Hub on the loopback."""

import asyncio
import threading

import pytest
import pytest_asyncio

from qwendesk.hub import hashing
from qwendesk.hub.hashing import hash_file
from qwendesk.hub.network import Network
from qwendesk.hub.remote import Hub
from qwendesk.services.models import checks as checks_module
from qwendesk.services.models.checks import OFFLINE
from tests.hub.conftest import fake_hub
from tests.hub.verified import lay_record, mmproj, mxfp4, qwen, split, unsloth
from tests.services.models.library import make_shelf

__all__ = ["fake_hub"]
REPO, NAME = "unsloth/Qwen3.5-35B-A3B-GGUF", "Qwen3.5-35B-A3B-Q4_K_M.gguf"


@pytest.fixture
def shelf(tmp_path, monkeypatch):
    async def make():
        return make_shelf(tmp_path, monkeypatch)

    return asyncio.run(make())


@pytest_asyncio.fixture
async def checks(shelf):
    service = shelf.checks()
    yield service
    await service.close()
    await shelf.models.close()


def codes(check) -> set[str]:
    return {finding.code for finding in check.findings} - {"no-mmproj"}


def sound(shelf, repo=REPO, name=NAME, **changes):
    path = unsloth(shelf.ours / repo / name, **changes)
    mmproj(path.with_name("mmproj-F16.gguf"))
    return path


@pytest.mark.asyncio
async def test_files_are_looked_at_when_they_appear(shelf, checks):
    path = sound(shelf)
    await shelf.looked(checks)
    assert checks.check(str(path)).findings == ()

    cut = shelf.ours / "a" / "b-GGUF" / "half.gguf"
    cut.parent.mkdir(parents=True)
    cut.write_bytes(path.read_bytes()[:-40])
    await shelf.looked(checks)

    assert codes(checks.check(str(cut))) == {"truncated"}


@pytest.mark.asyncio
async def test_a_changed_file_is_looked_at_again_and_a_gone_one_forgotten(shelf, checks):
    path = sound(shelf)
    await shelf.looked(checks)
    path.write_bytes(path.read_bytes()[:-40])
    await shelf.looked(checks)
    assert codes(checks.check(str(path))) == {"truncated"}

    path.unlink()
    await shelf.looked(checks)
    assert checks.check(str(path)) is None


@pytest.mark.asyncio
async def test_a_picture_file_that_appears_changes_what_is_said_of_the_model(shelf, checks):
    path = unsloth(shelf.ours / REPO / NAME)
    await shelf.looked(checks)
    assert "no-mmproj" in {finding.code for finding in checks.check(str(path)).findings}

    mmproj(path.with_name("mmproj-F16.gguf"))
    await shelf.looked(checks)

    assert checks.check(str(path)).findings == ()


@pytest.mark.asyncio
async def test_the_old_quants_are_known_by_their_header_alone(shelf, checks):
    wrong = [mxfp4("blk.0.attn_qkv.weight")]
    path = unsloth(shelf.lm_studio / REPO / "Qwen3.5-35B-A3B-UD-Q4_K_XL.gguf", wrong)

    await shelf.looked(checks)

    assert "mxfp4-attention" in codes(checks.check(str(path)))


@pytest.mark.asyncio
async def test_a_full_check_confirms_what_the_download_recorded_and_is_remembered(shelf, checks):
    path = sound(shelf)
    lay_record(path, hash_file(path))
    await shelf.looked(checks)
    assert not checks.check(str(path)).is_hashed

    assert await checks.verify(str(path)) == ()
    assert checks.check(str(path)).is_confirmed

    next_start = shelf.checks()
    await next_start.settled()
    assert next_start.check(str(path)).is_confirmed
    await next_start.close()


@pytest.mark.asyncio
async def test_a_full_check_finds_bytes_that_are_wrong(shelf, checks):
    path = sound(shelf)
    lay_record(path, "0" * 64)
    await shelf.looked(checks)

    await checks.verify(str(path))

    assert "hash-mismatch" in codes(checks.check(str(path)))


@pytest.mark.asyncio
async def test_a_full_check_tells_how_far_it_is(shelf, checks, monkeypatch):
    parts = split(shelf.ours / "o" / "n-GGUF" / "Q4_K_M")
    await shelf.looked(checks)
    monkeypatch.setattr(hashing, "_PROGRESS_BYTES", 1)
    told = []
    checks.subscribe(lambda news: told.extend(filter(None, map(checks.running, news.paths))))

    await checks.verify(str(parts[0]))
    await asyncio.sleep(0)

    total = sum(part.stat().st_size for part in parts)
    assert told[0].n_done == 0
    assert [each.n_done for each in told] == sorted(each.n_done for each in told)
    assert {each.n_bytes for each in told} == {total}
    assert checks.running(str(parts[0])) is None


@pytest.mark.asyncio
async def test_a_full_check_can_be_cancelled(shelf, checks, monkeypatch):
    path = sound(shelf)
    await shelf.looked(checks)
    loop, begun, go_on = asyncio.get_running_loop(), asyncio.Event(), threading.Event()

    def slow(path, cancelled, progress):
        loop.call_soon_threadsafe(begun.set)
        go_on.wait()
        return hash_file(path, cancelled, progress)

    monkeypatch.setattr(checks_module, "hash_file", slow)
    running = asyncio.create_task(checks.verify(str(path)))
    await begun.wait()
    checks.cancel(str(path))
    go_on.set()
    await running

    assert not checks.check(str(path)).is_hashed
    assert checks.running(str(path)) is None


@pytest.mark.asyncio
async def test_two_with_the_same_bytes_know_of_each_other(shelf, checks):
    one = qwen(shelf.ours / "o" / "one-GGUF" / "a.gguf")
    two = qwen(shelf.ours / "o" / "two-GGUF" / "b.gguf")
    await shelf.looked(checks)
    await checks.verify(str(one))
    assert "duplicate" not in codes(checks.check(str(one)))

    await checks.verify(str(two))
    assert "duplicate" in codes(checks.check(str(one))) & codes(checks.check(str(two)))

    two.unlink()
    await shelf.looked(checks)
    await checks.verify(str(one))
    assert "duplicate" not in codes(checks.check(str(one)))


@pytest.mark.asyncio
async def test_the_hub_is_asked_on_request_and_its_answer_kept(shelf, fake_hub):
    path = sound(shelf)
    fake_hub.add(REPO, NAME, b"another upload")
    checks = shelf.checks(lambda: Hub(Network(endpoint=fake_hub.endpoint)))
    await shelf.looked(checks)
    assert fake_hub.seen == []
    assert checks.check(str(path)).findings == ()

    assert await checks.ask_hub() == ()
    assert codes(checks.check(str(path))) == {"outdated-upstream"}
    await checks.close()
    await shelf.models.close()


@pytest.mark.asyncio
async def test_offline_asks_nobody_and_says_so(shelf, fake_hub):
    path = sound(shelf)
    fake_hub.add(REPO, NAME, b"another upload")
    shelf.settings.change({"offline": True})
    checks = shelf.checks(lambda: Hub(Network(endpoint=fake_hub.endpoint)))
    await shelf.looked(checks)

    assert await checks.ask_hub() == (OFFLINE,)
    assert await checks.verify(str(path)) == (OFFLINE,)
    assert fake_hub.seen == []
    assert checks.check(str(path)).is_hashed
    await checks.close()
    await shelf.models.close()


@pytest.mark.asyncio
async def test_a_hash_that_someone_else_computed_counts(shelf, checks):
    path = sound(shelf)
    lay_record(path, hash_file(path))
    await shelf.looked(checks)

    await checks.remember([(path, hash_file(path))])

    assert checks.check(str(path)).is_confirmed
