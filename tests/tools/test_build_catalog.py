"""The catalog is in the layout of its tool, and a new model is added with it in one sitting."""

import datetime
import functools
import math
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from qwendesk.hub.catalog import Catalog, decode_catalog
from qwendesk.hub.catalog_schema import Benchmark, CatalogFile, Contents, Licence, Part, Quality, SpeedReport
from tests.gguf_files import header_of, mmproj_values, model_values, tensor
from tests.hub.hub_server import COMMIT, FakeHub, running_hub
from tests.models import new_hub
from tools.build_catalog import FILE, layout, main, problems
from tools.gguf_writer import Tensor

REPO, NAME = "someone/Qwen9-3B-GGUF", "Qwen9-3B"


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeHub]:
    with running_hub() as made_up:
        monkeypatch.setenv("HF_ENDPOINT", made_up.endpoint)
        yield made_up


def contents_of(path: Path) -> Contents:
    return decode_catalog(path.read_bytes()).contents


def test_the_catalog_is_in_the_layout_of_its_tool_and_complete() -> None:
    catalog = decode_catalog(FILE.read_bytes())

    assert layout(catalog.contents) == FILE.read_text(encoding="utf-8"), "run: python -m tools.build_catalog"
    assert list(problems(catalog)) == []


def test_a_new_model_is_added_in_one_sitting(hub: FakeHub, tmp_path: Path) -> None:
    """As docs/catalog.md says: the Hub's files and the header first, then a person's facts."""
    path = tmp_path / "catalog.json"
    path.write_bytes(FILE.read_bytes())
    weights = [tensor("blk.0.ffn_up_exps.weight", 64, 32, 8), tensor("token_embd.weight", 64, 4)]
    hollow = [Tensor(each.name, each.shape, each.type, ()) for each in weights]
    values = model_values(
        qwen35moe__block_count=5,
        qwen35moe__nextn_predict_layers=1,
        qwen35moe__expert_count=8,
        qwen35moe__expert_used_count=2,
    )
    data = header_of(values, hollow)
    model = data + bytes(-len(data) % 32) + bytes(sum(each.n_bytes for each in weights))
    hub.add(REPO, f"{NAME}-Q4_K_M.gguf", model)
    hub.add(REPO, f"{NAME}-Q8_0.gguf", model + bytes(100))
    hub.add(REPO, "mmproj-F16.gguf", header_of(mmproj_values(64)))
    hub.add(REPO, "Another-3B-Q4_K_M.gguf", model)
    said: list[str] = []
    run = functools.partial(main, file=path, say=said.append, today=lambda: datetime.date(2026, 12, 1))

    assert run(["--repository", REPO, "--model", NAME]) == 1
    assert said[0] == f"{NAME} has no purpose, released, base_repo, presets, licence.name, licence.source."
    contents = contents_of(path)
    added, repository = contents.models[-1], contents.repositories[-1]
    assert (added.id, added.architecture, added.hyperparameters.block_count) == (NAME, "qwen35moe", 4)
    assert added.active_params_b <= added.params_b
    assert [(each.path, each.kind, each.quant, each.is_exact) for each in repository.files] == [
        (f"{NAME}-Q4_K_M.gguf", "model", "Q4_K_M", True),
        (f"{NAME}-Q8_0.gguf", "model", "Q8_0", True),
        ("mmproj-F16.gguf", "mmproj", "F16", True),
    ]
    assert all(len(each.sha256) == 64 and each.n_bytes for each in repository.files)
    assert (repository.mmproj_path, repository.revision) == ("mmproj-F16.gguf", COMMIT)
    assert contents.date == "2026-12-01"

    filled = msgspec.structs.replace(
        added,
        purpose="For tests.",
        released="2026-11-30",
        base_repo="Qwen/Qwen9-3B",
        presets="Qwen3.8",
        licence=Licence("Apache 2.0", "huggingface.co/Qwen/Qwen9-3B", date="2026-11-30"),
    )
    path.write_text(layout(msgspec.structs.replace(contents, models=(*contents.models[:-1], filled))), encoding="utf-8")
    assert run([]) == 0

    hub.add(REPO, f"{NAME}-Q8_0.gguf", model + bytes(200))
    assert run(["--repository", REPO]) == 0
    assert [each.path for each in contents_of(path).superseded if each.repo == REPO] == [f"{NAME}-Q8_0.gguf"]


def test_a_split_model_is_described_by_all_its_shards(hub: FakeHub, tmp_path: Path) -> None:
    """Unsloth's first shard has no tensors at all."""
    path = tmp_path / "catalog.json"
    path.write_bytes(FILE.read_bytes())
    new_hub.add_with_table(hub)

    main(["--repository", new_hub.REPO, "--model", new_hub.NAME], file=path, say=lambda _text: None)
    added = contents_of(path).models[-1]
    weights = sum(math.prod(each.shape) for each in new_hub.tensors_of(new_hub.WITH_TABLE, "q4_k_m"))
    assert added.params_b == pytest.approx(weights / 1e9, rel=1e-3)
    assert 0 < added.active_params_b < added.params_b


def test_a_repository_that_is_not_there_changes_nothing(hub: FakeHub, tmp_path: Path) -> None:
    path = tmp_path / "catalog.json"
    path.write_bytes(FILE.read_bytes())
    said: list[str] = []

    assert main(["--repository", "someone/none", "--model", NAME], file=path, say=said.append) == 1
    assert "someone/none" in said[0]
    assert path.read_bytes() == FILE.read_bytes()


def quality(**changes: object) -> Contents:
    good = Quality("Qwen3.8-27B", "unsloth", "Q8_0", "perplexity", 6.0, "Series Z", "a page", "2026-10")
    return changed("quality", msgspec.structs.replace(good, **changes))


def changed(name: str, value: object) -> Contents:
    shipped = contents_of(FILE)
    return msgspec.structs.replace(shipped, **{name: (*getattr(shipped, name), value)})


def with_file(file: CatalogFile) -> Contents:
    shipped = contents_of(FILE)
    first, *others = shipped.repositories
    grown = msgspec.structs.replace(first, files=(*first.files, file))
    return msgspec.structs.replace(shipped, repositories=(grown, *others))


BAD = {
    "no source": quality(source=""),
    "no date": quality(date=""),
    "newer than the catalog's date": quality(date="2099-01-01"),
    "which isn't there": quality(model="Qwen9-3B"),
    "in benchmarks has no date": changed(
        "benchmarks", Benchmark(name="A", model="Qwen3.8-27B", score=1, source="a", date="")
    ),
    "in speeds has no source": changed(
        "speeds", SpeedReport(model="Qwen3.8-27B", quant="Q8_0", n_bytes=1, tok_s=1, date="2026", source="")
    ),
    "no size": with_file(CatalogFile("a-Q4_K_M.gguf", 0, quant="Q4_K_M")),
    "its name says 'IQ3_S-MTP'": with_file(CatalogFile("a-IQ3_S-mtp.gguf", 1, quant="IQ3_S")),
    "shards": with_file(CatalogFile("a-Q4_K_M-00001-of-00003.gguf", 2, quant="Q4_K_M", parts=(Part(1), Part(1)))),
    "larger or smaller": with_file(
        CatalogFile("a-Q4_K_M-00001-of-00002.gguf", 9, quant="Q4_K_M", parts=(Part(1), Part(1)))
    ),
}  # fmt: skip


@pytest.mark.parametrize("words", BAD)
def test_a_fact_that_is_not_complete_is_named(words: str) -> None:
    found = list(problems(Catalog(BAD[words])))

    assert len(found) == 1
    assert words in found[0]
