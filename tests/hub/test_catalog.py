"""The catalog the app ships, and how it is read."""

import datetime
from pathlib import Path

import pytest

from qwendesk.core.file_names import is_first_shard
from qwendesk.core.presets import sampling
from qwendesk.hub.catalog import BadCatalog, decode_catalog, load_catalog
from tests.hub.verified import NEW, OTHER, catalog, current_set

MODELS = {
    "Qwen3.5-35B-A3B", "Qwen3.5-27B", "Qwen3.5-122B-A10B", "Qwen3.5-397B-A17B", "Qwen3.5-9B", "Qwen3.5-4B",
    "Qwen3.5-2B", "Qwen3.5-0.8B", "Qwen3.6-35B-A3B", "Qwen3.6-27B", "Qwen3.8-27B",
    "Qwen3.8-Flash-Next", "Qwen3-Coder-Next",
}  # fmt: skip
SHIPPED = load_catalog()


def test_all_models_and_uploaders_are_there() -> None:
    assert {model.id for model in SHIPPED.models} == MODELS
    assert {each.uploader for each in SHIPPED.repositories} == {
        "unsloth", "bartowski", "lmstudio-community", "ggml-org", "ISTA-DASLab", "prism-ml"
    }  # fmt: skip
    assert {each.model for each in SHIPPED.repositories} == MODELS


def test_every_repository_of_a_model_that_sees_has_an_mmproj_that_exists() -> None:
    for each in SHIPPED.repositories:
        if each.model == "Qwen3-Coder-Next":
            continue
        found = SHIPPED.find_file(each.mmproj_repo, each.mmproj_path)
        assert found is not None, each.repo
        assert found.file.kind == "mmproj"
        assert found.repository.model == each.model


def test_every_file_has_a_size_and_every_set_all_its_shards() -> None:
    for each in SHIPPED.repositories:
        for file in each.files:
            assert file.n_bytes > 0
            assert file.kind != "model" or file.quant
            if file.parts:
                assert is_first_shard(file.path)
                assert abs(sum(part.n_bytes for part in file.parts) - file.n_bytes) < 10


def test_twins_of_a_quant_are_two_files_with_names_of_their_own() -> None:
    """ "ISTA-DASLab/...:IQ3_S" would mean either of the two."""
    repository = SHIPPED.repository("ISTA-DASLab/Qwen3.8-27B-GSQ-RCO-GGUF")
    assert repository is not None
    models = {file.quant: file for file in repository.files if file.kind == "model"}
    assert len(models) == sum(file.kind == "model" for file in repository.files) == 8
    twin, plain = models["GSQ-RCO-IQ3_S-MTP"], models["GSQ-RCO-IQ3_S"]
    assert (twin.path, twin.n_bytes) == ("Qwen3.8-27B-GSQ-RCO-IQ3_S-mtp.gguf", 12_120_016_960)
    assert plain.path == "Qwen3.8-27B-GSQ-RCO-IQ3_S.gguf"
    assert twin.sha256 != plain.sha256


def test_what_its_maker_measured_is_said_to_be_its_makers() -> None:
    rows = [each for each in SHIPPED.contents.quality if each.uploader == "ISTA-DASLab"]
    makers = [each for each in rows if "ISTA-DASLab" in each.source]

    assert makers
    assert all("by the maker" in each.series for each in makers)
    assert any("by an outsider" in each.series for each in rows)


def test_a_file_is_found_by_place_and_by_bytes() -> None:
    repo, path = "unsloth/Qwen3.5-35B-A3B-GGUF", "Qwen3.5-35B-A3B-UD-Q4_K_XL.gguf"
    found = SHIPPED.find_file(repo, path)

    assert found is not None
    assert found.n_bytes == 22_241_950_336
    assert SHIPPED.find_by_sha256(found.sha256) == (found,)
    assert SHIPPED.is_current(found.sha256)
    assert SHIPPED.find_file(repo, "nothing.gguf") is None


def test_nothing_is_both_present_and_replaced() -> None:
    for each in SHIPPED.contents.superseded:
        assert not SHIPPED.is_current(each.sha256)
        assert (SHIPPED.superseded(each.sha256) is None) == is_first_shard(each.path)


def test_withdrawn_quant_belongs_to_one_model() -> None:
    withdrawn = SHIPPED.deletion("unsloth/Qwen3.5-35B-A3B-GGUF", "Qwen3.5-35B-A3B-UD-Q4_K_M.gguf")

    assert withdrawn is not None
    assert withdrawn.instead == "Qwen3.5-35B-A3B-UD-Q4_K_L.gguf"
    assert SHIPPED.find_file(withdrawn.repo, withdrawn.instead) is not None
    part = "UD-Q4_K_M/Qwen3.5-397B-A17B-UD-Q4_K_M-00002-of-00006.gguf"
    assert SHIPPED.find_file("unsloth/Qwen3.5-397B-A17B-GGUF", part) is not None
    assert SHIPPED.deletion("unsloth/Qwen3.5-397B-A17B-GGUF", part) is None


def test_numbers_and_notes_have_sources() -> None:
    assert all(each.source and each.series for each in SHIPPED.contents.quality)
    assert all(each.source for each in SHIPPED.contents.notes)
    early = [each for each in SHIPPED.contents.quality if (each.measure, each.quant) == ("perplexity", "UD-Q4_K_XL")]
    assert {(each.value, each.is_before_fix) for each in early} == {(7.170, True), (6.552, False)}


def test_flash_next_has_its_shards_and_nothing_that_the_engine_cannot_load() -> None:
    """Every first shard of Unsloth's files holds metadata only; files for MTP don't load, so they are no models."""
    unsloth = SHIPPED.repository("unsloth/Qwen3.8-Flash-Next-GGUF")
    assert unsloth is not None
    models = {file.quant: file for file in unsloth.files if file.kind == "model"}
    known = [file for file in models.values() if file.parts]
    assert all(file.parts[0].n_bytes in (10_946_624, 10_946_618) for file in known)
    assert models["UD-IQ4_XS"].n_bytes == 93_682_584_224
    assert all(part.is_exact and part.sha256 for part in models["UD-IQ4_XS"].parts)
    assert not any("mtp" in file.path.lower() for file in models.values())


def test_every_licence_has_a_source_and_only_that_of_flash_next_restricts() -> None:
    assert all(model.licence.name and model.licence.source for model in SHIPPED.models)
    restricted = {model.id: model.licence for model in SHIPPED.models if model.licence.restriction}
    assert list(restricted) == ["Qwen3.8-Flash-Next"]
    assert restricted["Qwen3.8-Flash-Next"].name == "Qwen Community License 1.0"


@pytest.mark.parametrize(
    ("repo", "licence"),
    [
        ("unsloth/Qwen3.8-Flash-Next-GGUF", "Qwen Community License 1.0"),
        ("someone/Qwen3.8-Flash-Next-uncensored-GGUF", "Qwen Community License 1.0"),
        ("unsloth/Qwen3.8-27B-GGUF", "Apache 2.0"),
        ("someone/Qwen3.8-27B-tuned-GGUF", None),
        ("someone/Model-GGUF", None),
    ],
)
def test_the_licence_of_a_repository_is_its_models(repo: str, licence: str | None) -> None:
    """Whoever tunes a model may choose another licence, but can't lift a restriction."""
    found = SHIPPED.licence_of(repo)
    assert (found.name if found is not None else None) == licence


def test_presets_match_those_of_the_app() -> None:
    model = SHIPPED.model("Qwen3.5-35B-A3B")
    assert model is not None
    shipped = SHIPPED.contents.presets[model.presets]["thinking_coding"]
    used = sampling("qwen3.5", "precise", thinking=True)
    assert (shipped.temperature, shipped.presence_penalty) == (used["temperature"], used["presence_penalty"])
    assert all(each.presets in SHIPPED.contents.presets for each in SHIPPED.models)


@pytest.mark.parametrize(
    ("name", "model"),
    [
        ("Qwen3.8-27B-UD-Q4_K_XL.gguf", "Qwen3.8-27B"),
        ("Qwen3.8-Flash-Next-UD-IQ4_XS-00001-of-00003.gguf", "Qwen3.8-Flash-Next"),
        ("Qwen3.5-35B-A3B-Q4_K_M.gguf", "Qwen3.5-35B-A3B"),
        ("Qwen_Qwen3.5-2B-Q4_K_M.gguf", "Qwen3.5-2B"),
        ("Qwen3.5 27B", "Qwen3.5-27B"),
        ("unsloth/Qwen3.6-27B-GGUF", "Qwen3.6-27B"),
        ("Qwen3.5-9B.gguf", "Qwen3.5-9B"),
        ("Qwen3.5-35B", None),
        ("Qwen3-4B", None),
        ("model.gguf", None),
    ],
)
def test_models_are_known_by_name(name: str, model: str | None) -> None:
    found = SHIPPED.model_of(name)
    assert (found.id if found else None) == model


def test_shared_first_shard_proves_nothing(tmp_path: Path) -> None:
    known = catalog(files=[current_set("a-00001-of-00002.gguf", [NEW, OTHER])])

    assert not known.is_current(NEW)
    assert known.is_current(OTHER)
    found = known.find_by_sha256(OTHER)[0]
    assert found.path == "a-00002-of-00002.gguf"
    assert known.find_file(found.repository.repo, found.path) == found


def test_catalog_has_its_date() -> None:
    day = datetime.date.fromisoformat(SHIPPED.date)

    assert SHIPPED.age_days(day + datetime.timedelta(days=40)) == 40
    assert SHIPPED.age_days(day - datetime.timedelta(days=1)) == 0


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (b"", "damaged"),
        (b'{"schema_version":3}', "damaged"),
        (b'{"schema_version":99,"anything":1}', "another version"),
        (b'{"schema_version":3,"date":"2026-07-29","sources":[],"surprise":1}', "damaged"),
        (b'{"schema_version":3,"date":"some day","sources":[]}', "damaged"),
        (
            b'{"schema_version":3,"date":"2026-07-29","sources":[],'
            b'"superseded":[{"sha256":"xyz","repo":"a/b","path":"c","seen":"2026-03-01"}]}',
            "damaged",
        ),
    ],
)
def test_invalid_catalog_is_refused(text: bytes, words: str) -> None:
    with pytest.raises(BadCatalog, match=words):
        decode_catalog(text)


def test_a_missing_catalog_says_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(BadCatalog, match="Install QwenDesk again"):
        load_catalog(tmp_path / "none.json")
