"""Search and repositories through the real Hub library, against a Hub of our own."""

from collections.abc import AsyncIterator
from pathlib import Path

import msgspec
import pytest
import pytest_asyncio

from qwendesk.core.devices import DeviceInfo
from qwendesk.core.model_facts import LAZY_TABLE, TensorFacts
from qwendesk.core.observed import Observed
from qwendesk.core.units import GIB
from qwendesk.hub.catalog_updates import CatalogStore
from qwendesk.hub.remote import RemoteFile
from qwendesk.models.fit import Pc
from qwendesk.models.network import NetworkService
from qwendesk.models.offers import Offers
from qwendesk.models.repo_files import repo_files, scale_facts
from qwendesk.models.search import ModelSearch, params_from_name
from qwendesk.settings.service import SettingsService
from tests.gguf_files import header_of, model_values, moe_35b, tensor
from tests.hub.hub_server import FakeHub, running_hub

REPO = "someone/Model-4B-GGUF"
A_PC = Pc(gpus=(DeviceInfo("CUDA0", "A card", "gpu", "CUDA", 24 * GIB, None),), ram_bytes=32 * GIB)


class Setting:
    """A search service on a Hub of its own."""

    def __init__(self, hub: FakeHub, folder: Path) -> None:
        self.hub = hub
        self.settings = SettingsService(folder / "settings.json")
        self.network = NetworkService(self.settings)
        self.search = ModelSearch(self.network, Observed(Offers(pc=A_PC)), CatalogStore())
        self.states: list[str] = []
        self.search.state.subscribe(lambda state: self.states.append(state.state))


@pytest_asyncio.fixture
async def setting(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Setting]:
    from huggingface_hub.utils import close_session

    with running_hub() as hub:
        monkeypatch.setenv("HF_ENDPOINT", hub.endpoint)
        setting = Setting(hub, tmp_path)
        yield setting
        setting.network.close()
        close_session()


def a_file(path: str, n_bytes: int = 100) -> RemoteFile:
    return RemoteFile(REPO, path, "0" * 40, n_bytes, "a" * 64, "a" * 64, "2026-03-05T10:00:00")


async def test_search_finds_repositories_and_reads_their_names(setting: Setting) -> None:
    setting.hub.add(REPO, "Model-4B-Q4_K_M.gguf", b"x")
    setting.hub.add("someone/Model-397B-uncensored-GGUF", "a.gguf", b"x")
    setting.hub.add("someone/Else-GGUF", "a.gguf", b"x")
    await setting.search.search("model", "downloads")
    assert setting.states == ["searching", "done"]
    hits = {hit.found.repo: hit for hit in setting.search.state.value.hits}
    assert set(hits) == {REPO, "someone/Model-397B-uncensored-GGUF"}
    assert hits[REPO].may_fit is True
    huge = hits["someone/Model-397B-uncensored-GGUF"]
    assert huge.may_fit is False
    assert huge.found.marks == ("uncensored",)
    assert [path for path in setting.hub.requests("GET") if "filter=gguf" in path]


async def test_repositories_of_draft_models_are_not_found(setting: Setting) -> None:
    setting.hub.add(REPO, "Model-4B-Q4_K_M.gguf", b"x")
    setting.hub.add("someone/Model-4B-DFlash-GGUF", "Model-4B-Q8_0.gguf", b"x")
    await setting.search.search("model", "downloads")
    assert [hit.found.repo for hit in setting.search.state.value.hits] == [REPO]


async def test_unreachable_hub_is_reported(setting: Setting) -> None:
    setting.settings.change({"hub_endpoint": "http://127.0.0.1:9"})
    await setting.search.search("model", "downloads")
    assert setting.search.state.value.problem == "No connection to 127.0.0.1:9. Check your internet connection."
    setting.settings.change({"proxy": "http://127.0.0.1:9"})
    await setting.search.search("model", "downloads")
    assert setting.search.state.value.problem.endswith("and the proxy in the settings.")


async def test_a_repository_shows_files_with_fit_by_one_header(setting: Setting) -> None:
    header = header_of(model_values(), [tensor("blk.0.attn_q.weight", 64, 64), tensor("token_embd.weight", 64, 64)])
    setting.hub.add(REPO, "Model-4B-Q4_K_M.gguf", header + bytes(40_000))
    setting.hub.add(REPO, "Model-4B-Q8_0.gguf", header + bytes(90_000))
    setting.hub.add(REPO, "mmproj-F16.gguf", b"m" * 5_000)
    await setting.search.open(REPO)
    opened = setting.search.state.value.opened
    assert opened is not None
    assert [(item.quant, item.mmproj_bytes) for item in opened.items] == [("Q4_K_M", 5_000), ("Q8_0", 5_000)]
    assert all(item.fit is not None and item.fit.kind == "vram" and item.fit.with_pictures for item in opened.items)
    assert opened.facts is not None
    assert opened.facts.architecture == model_values()["general.architecture"]
    read = [path for path in setting.hub.requests("GET", "store") if "Q8_0" in path]
    assert read == [], "one header is enough"


async def test_unreadable_header_keeps_the_list_of_files(setting: Setting) -> None:
    setting.hub.add(REPO, "Model-4B-Q4_K_M.gguf", b"<html>" * 100)
    await setting.search.open(REPO)
    opened = setting.search.state.value.opened
    assert opened is not None
    assert len(opened.items) == 1
    assert opened.items[0].fit is None
    assert opened.facts_problem


async def test_a_known_repository_needs_no_header(setting: Setting) -> None:
    repo = "unsloth/Qwen3.5-4B-GGUF"
    setting.hub.add(repo, "Qwen3.5-4B-Q4_K_M.gguf", b"x" * 1_000)
    await setting.search.open(repo)
    opened = setting.search.state.value.opened
    assert opened is not None
    assert opened.model == "Qwen3.5-4B"
    assert opened.items[0].fit is not None
    assert setting.hub.requests("GET", "store") == []


def test_shards_are_one_item_and_companion_files_are_hidden() -> None:
    files = (
        a_file("BF16/Model-4B-BF16-00001-of-00002.gguf"),
        a_file("BF16/Model-4B-BF16-00002-of-00002.gguf"),
        a_file("Model-4B-UD-Q4_K_XL.gguf", 50),
        a_file("mmproj-F16.gguf"),
        a_file("mtp-Model-4B.gguf"),
        a_file("Model-4B-DFlash2-Q8_0.gguf"),
        a_file("Model-4B-imatrix.gguf"),
        a_file("imatrix_unsloth.gguf"),
    )
    small, split = repo_files(files)
    assert (small.quant, small.n_shards, small.mmproj_bytes) == ("UD-Q4_K_XL", 1, 100)
    assert (split.path, split.quant, split.n_shards, split.n_bytes) == (files[0].path, "BF16", 2, 200)


def test_other_quants_are_estimated_from_the_same_layers() -> None:
    facts = moe_35b()
    half = scale_facts(facts, facts.file_bytes // 2)
    assert half.block_count == facts.block_count
    assert sum(each.n_bytes for each in half.tensors) == pytest.approx(facts.file_bytes // 2, rel=0.01)


def test_table_that_is_read_row_by_row_has_the_same_size_in_all_quants() -> None:
    facts = moe_35b()
    table = TensorFacts(LAZY_TABLE, "IQ4_NL", (160, 1_000_000), 9_000_000_000)
    facts = msgspec.structs.replace(facts, tensors=(*facts.tensors, table), file_bytes=facts.file_bytes + table.n_bytes)
    half = scale_facts(facts, facts.file_bytes // 2)
    assert half.tensors[-1] == table
    assert sum(each.n_bytes for each in half.tensors) == pytest.approx(facts.file_bytes // 2, rel=0.01)


@pytest.mark.parametrize(
    ("repo", "params"), [("unsloth/Qwen3.5-35B-A3B-GGUF", 35), ("a/Qwen3.5-0.8B-GGUF", 0.8), ("a/Model-GGUF", None)]
)
def test_parameter_count_is_read_from_the_name(repo: str, params: float | None) -> None:
    assert params_from_name(repo) == params
