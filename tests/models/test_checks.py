"""Files are looked at when they appear, read to the last byte when asked, and compared with a Hub on the loopback."""

import asyncio
import threading
from pathlib import Path

import pytest
import pytest_asyncio

from qwendesk.hub import file_hashes
from qwendesk.hub.catalog_updates import FileUpdate, RepositoryUpdate
from qwendesk.hub.file_hashes import hash_file
from qwendesk.hub.network import Network
from qwendesk.hub.remote import Hub
from tests.hub.conftest import fake_hub
from tests.hub.verified import lay_record, mmproj, mxfp4, qwen, split, unsloth
from tests.models.library import make_model_home

__all__ = ["fake_hub"]
REPO, NAME = "unsloth/Qwen3.5-35B-A3B-GGUF", "Qwen3.5-35B-A3B-Q4_K_M.gguf"


@pytest.fixture
def model_home(tmp_path, monkeypatch):
    async def make():
        return make_model_home(tmp_path, monkeypatch)

    return asyncio.run(make())


@pytest_asyncio.fixture
async def checks(model_home):
    service = model_home.checks()
    yield service
    await service.close()


def codes(check) -> set[str]:
    return {finding.code for finding in check.findings} - {"no-mmproj"}


def sound(model_home, repo=REPO, name=NAME, **changes):
    path = unsloth(model_home.ours / repo / name, **changes)
    mmproj(path.with_name("mmproj-F16.gguf"))
    return path


async def test_new_files_are_checked(model_home, checks):
    path = sound(model_home)
    await model_home.wait_for_checks(checks)
    assert checks.state.value.checks[str(path)].findings == ()

    cut = model_home.ours / "a" / "b-GGUF" / "half.gguf"
    cut.parent.mkdir(parents=True)
    cut.write_bytes(path.read_bytes()[:-40])
    await model_home.wait_for_checks(checks)

    assert codes(checks.state.value.checks[str(cut)]) == {"truncated"}


async def test_changed_file_is_checked_again_and_missing_one_forgotten(model_home, checks):
    path = sound(model_home)
    await model_home.wait_for_checks(checks)
    path.write_bytes(path.read_bytes()[:-40])
    await model_home.wait_for_checks(checks)
    assert codes(checks.state.value.checks[str(path)]) == {"truncated"}

    path.unlink()
    await model_home.wait_for_checks(checks)
    assert str(path) not in checks.state.value.checks


async def test_a_slow_check_does_not_replace_a_later_one(model_home, checks, monkeypatch):
    path = sound(model_home)
    await model_home.wait_for_checks(checks)
    check = checks._checker.check
    is_read, later_is_done = threading.Event(), threading.Event()

    def check_slowly(files, gone):
        found = check(files, gone)
        if is_read.is_set():
            later_is_done.set()
        else:
            is_read.set()
            later_is_done.wait(0.5)  # the later one waits for this one, as it should, or is done by then
        return found

    monkeypatch.setattr(checks._checker, "check", check_slowly)
    slow = asyncio.create_task(checks.remember([(path, hash_file(path))]))
    await asyncio.to_thread(is_read.wait)
    path.write_bytes(path.read_bytes()[:-40])
    await model_home.wait_for_checks(checks)
    await slow
    assert codes(checks.state.value.checks[str(path)]) == {"truncated"}


async def test_the_loop_does_not_wait_for_a_check_when_another_model_is_gone(model_home, checks, monkeypatch):
    path, other = sound(model_home), sound(model_home, name="b-Q8_0.gguf")
    await model_home.wait_for_checks(checks)
    begun, may_end, was_free = threading.Event(), threading.Event(), []
    gather = checks._checker._gather

    def gather_slowly(files):
        begun.set()
        was_free.append(may_end.wait(5))
        return gather(files)

    monkeypatch.setattr(checks._checker, "_gather", gather_slowly)
    path.write_bytes(path.read_bytes()[:-40])
    await model_home.models.refresh()
    await asyncio.to_thread(begun.wait)
    other.unlink()
    await model_home.models.refresh()
    may_end.set()
    await checks.wait_until_settled()
    assert str(other) not in checks.state.value.checks
    assert all(was_free)


async def test_file_that_changes_at_the_end_of_a_check_is_checked(model_home, checks, monkeypatch):
    path = sound(model_home)
    check = checks._check

    def cut_off():
        path.write_bytes(path.read_bytes()[:-40])
        _, library, _ = model_home.models._scan(model_home.models.folders)
        model_home.models.state.update(library=library)

    async def check_and_change(models):
        await check(models)
        monkeypatch.setattr(checks, "_check", check)
        asyncio.get_running_loop().call_soon(cut_off)  # runs before the loop tells that the task has ended

    monkeypatch.setattr(checks, "_check", check_and_change)
    await model_home.models.refresh()
    await checks.wait_until_settled()
    assert codes(checks.state.value.checks[str(path)]) == {"truncated"}


async def test_new_mmproj_changes_the_findings_of_its_model(model_home, checks):
    path = unsloth(model_home.ours / REPO / NAME)
    await model_home.wait_for_checks(checks)
    assert "no-mmproj" in {finding.code for finding in checks.state.value.checks[str(path)].findings}

    mmproj(path.with_name("mmproj-F16.gguf"))
    await model_home.wait_for_checks(checks)

    assert checks.state.value.checks[str(path)].findings == ()


async def test_early_quants_are_recognised_by_their_header(model_home, checks):
    wrong = [mxfp4("blk.0.attn_qkv.weight")]
    path = unsloth(model_home.lm_studio / REPO / "Qwen3.5-35B-A3B-UD-Q4_K_XL.gguf", wrong)

    await model_home.wait_for_checks(checks)

    assert "mxfp4-attention" in codes(checks.state.value.checks[str(path)])


async def test_a_full_check_confirms_what_the_download_recorded_and_is_remembered(model_home, checks):
    path = sound(model_home)
    lay_record(path, hash_file(path))
    await model_home.wait_for_checks(checks)
    assert not checks.state.value.checks[str(path)].is_hashed

    assert await checks.verify(str(path)) == ()
    assert checks.state.value.checks[str(path)].is_confirmed

    next_start = model_home.checks()
    await next_start.wait_until_settled()
    assert next_start.state.value.checks[str(path)].is_confirmed
    await next_start.close()


async def test_full_check_finds_wrong_bytes(model_home, checks):
    path = sound(model_home)
    lay_record(path, "0" * 64)
    await model_home.wait_for_checks(checks)

    await checks.verify(str(path))

    assert "hash-mismatch" in codes(checks.state.value.checks[str(path)])


async def test_full_check_reports_progress(model_home, checks, monkeypatch):
    parts = split(model_home.ours / "o" / "n-GGUF" / "Q4_K_M")
    await model_home.wait_for_checks(checks)
    monkeypatch.setattr(file_hashes, "_PROGRESS_BYTES", 1)
    told = []
    checks.state.subscribe(lambda state: told.extend(state.running.values()))

    await checks.verify(str(parts[0]))
    await asyncio.sleep(0)

    total = sum(part.stat().st_size for part in parts)
    assert told[0].n_done == 0
    assert [each.n_done for each in told] == sorted(each.n_done for each in told)
    assert {each.n_bytes for each in told} == {total}
    assert str(parts[0]) not in checks.state.value.running


async def test_duplicates_are_reported_for_both_files(model_home, checks):
    one = qwen(model_home.ours / "o" / "one-GGUF" / "a.gguf")
    two = qwen(model_home.ours / "o" / "two-GGUF" / "b.gguf")
    await model_home.wait_for_checks(checks)
    await checks.verify(str(one))
    assert "duplicate" not in codes(checks.state.value.checks[str(one)])

    await checks.verify(str(two))
    assert "duplicate" in codes(checks.state.value.checks[str(one)]) & codes(checks.state.value.checks[str(two)])

    two.unlink()
    await model_home.wait_for_checks(checks)
    await checks.verify(str(one))
    assert "duplicate" not in codes(checks.state.value.checks[str(one)])


async def test_hub_is_asked_on_request_and_its_answer_is_saved(model_home, fake_hub):
    path = sound(model_home)
    fake_hub.add(REPO, NAME, b"another upload")
    checks = model_home.checks(lambda: Hub(Network(endpoint=fake_hub.endpoint)))
    await model_home.wait_for_checks(checks)
    assert fake_hub.seen == []
    assert checks.state.value.checks[str(path)].findings == ()

    assert await checks.compare_with_hub() == ()
    assert codes(checks.state.value.checks[str(path)]) == {"outdated-upstream"}
    await checks.close()


def count_checks(checks, monkeypatch) -> list[str]:
    """Return a list of the models that are checked from now on, in that order."""
    checked, check = [], checks._checker.check

    def counted(sets, gone):
        checked.extend(Path(each.path).name for each in sets)
        return check(sets, gone)

    monkeypatch.setattr(checks._checker, "check", counted)
    return checked


async def test_catalog_that_is_read_after_the_checks_starts_no_second_ones(model_home, checks, monkeypatch):
    sound(model_home)
    checked = count_checks(checks, monkeypatch)
    await model_home.wait_for_checks(checks)
    assert sorted(checked) == [NAME, "mmproj-F16.gguf"]

    await model_home.catalog.load()
    await checks.wait_until_settled()

    assert sorted(checked) == [NAME, "mmproj-F16.gguf"]


async def test_every_model_is_checked_again_with_another_catalog(model_home, checks, monkeypatch):
    sound(model_home)
    await model_home.wait_for_checks(checks)
    await model_home.catalog.load()
    checked = count_checks(checks, monkeypatch)

    model_home.catalog.store.add({REPO: RepositoryUpdate("2126-01-01", "c1", {NAME: FileUpdate(10, "", "")})})
    await model_home.catalog.load()
    await checks.wait_until_settled()

    assert sorted(checked) == [NAME, "mmproj-F16.gguf"]


async def test_hub_without_news_leaves_the_other_models_unchecked(model_home, fake_hub, monkeypatch):
    path, other = sound(model_home), sound(model_home, "unsloth/Qwen3.5-9B-GGUF", "Qwen3.5-9B-Q4_K_M.gguf")
    fake_hub.add(REPO, NAME, path.read_bytes())
    checks = model_home.checks(lambda: Hub(Network(endpoint=fake_hub.endpoint)))
    await model_home.wait_for_checks(checks)
    await checks.verify(str(path))
    await checks.wait_until_settled()
    checked = count_checks(checks, monkeypatch)

    await checks.verify(str(path))
    await checks.wait_until_settled()

    assert NAME in checked
    assert other.name not in checked
    await checks.close()


async def test_remembered_hash_confirms_a_file(model_home, checks):
    path = sound(model_home)
    lay_record(path, hash_file(path))
    await model_home.wait_for_checks(checks)

    await checks.remember([(path, hash_file(path))])

    assert checks.state.value.checks[str(path)].is_confirmed
