"""What is told of other uploaders, by the catalog that ships."""

import pytest

from qwendesk.core.file_names import is_helper_name
from qwendesk.core.units import GIB
from qwendesk.hub.catalog import Catalog, load_catalog
from qwendesk.models.fit import Pc
from qwendesk.models.offers import make_offers
from qwendesk.models.ranking import find_flag
from qwendesk.models.uploaders import UPLOADERS, OtherUploader, other_uploaders, preferred_repository


@pytest.fixture(scope="module")
def catalog() -> Catalog:
    return load_catalog()


def others_of(catalog: Catalog, model: str) -> dict[str, OtherUploader]:
    found = catalog.model(model)
    assert found is not None
    return {each.uploader: each for each in other_uploaders(catalog, found)}


def test_unsloth_comes_first_and_the_others_are_named_in_order(catalog: Catalog) -> None:
    assert list(others_of(catalog, "Qwen3.5-35B-A3B")) == ["bartowski", "lmstudio-community", "ggml-org"]
    for model in catalog.models:
        preferred = preferred_repository(catalog, model)
        assert preferred is not None
        assert preferred.uploader == "unsloth"
        others = [each.uploader for each in other_uploaders(catalog, model)]
        assert "unsloth" not in others
        assert others == sorted(others, key=UPLOADERS.index)


def test_who_never_had_the_early_fault_is_told_only_of_models_that_had_it(catalog: Catalog) -> None:
    fault = "Never had the fault of Unsloth's early uploads."

    assert all(fault in each.sentences for each in others_of(catalog, "Qwen3.5-35B-A3B").values())
    assert not any(fault in each.sentences for each in others_of(catalog, "Qwen3.6-27B").values())


def test_sizes_of_files_of_the_same_name_are_compared(catalog: Catalog) -> None:
    ggml = others_of(catalog, "Qwen3.6-27B")["ggml-org"]

    assert "Same name, other size: Q4_K_M has 17.8 GB here, 15.7 GB from Unsloth." in ggml.sentences


def test_where_the_mtp_layer_is_known_it_is_told(catalog: Catalog) -> None:
    others = others_of(catalog, "Qwen3.8-27B")

    assert any("MTP inside" in line for line in others["bartowski"].sentences)
    assert any("MTP not inside" in line for line in others["ggml-org"].sentences)
    assert not any("MTP" in line for line in others["lmstudio-community"].sentences)


def test_repositories_without_models_are_not_offered(catalog: Catalog) -> None:
    """lmstudio-community deleted its files of 122B."""
    assert list(others_of(catalog, "Qwen3.5-122B-A10B")) == ["bartowski"]


def test_quants_unlike_anyone_elses_are_offered_with_those_of_the_preferred_uploader(catalog: Catalog) -> None:
    pc = Pc(ram_bytes=64 * GIB)
    offer = next(each for each in make_offers(catalog, pc, with_pictures=True) if each.id == "Qwen3.8-27B")
    by_name = {quant.quant: quant for quant in offer.quants}

    assert len(by_name) == len(offer.quants)
    assert by_name["UD-IQ4_XS"].repo == "unsloth/Qwen3.8-27B-GGUF"
    gsq = by_name["GSQ-RCO-IQ3_S-MTP"]
    assert (gsq.repo, gsq.mmproj_path) == ("ISTA-DASLab/Qwen3.8-27B-GSQ-RCO-GGUF", "mmproj-Qwen3.8-27B-BF16.gguf")
    assert by_name["UD-IQ4_XS"].mmproj_path == "mmproj-F16.gguf"
    assert not {"PQ2_0", "PTQ1_0", "IQ3_M"}.intersection(by_name)


def test_a_file_whose_parts_would_be_slow_in_ram_is_not_recommended(catalog: Catalog) -> None:
    """llama.cpp has no kernel for Q2_0 on x86."""
    pc = Pc(ram_bytes=128 * GIB)
    offer = next(each for each in make_offers(catalog, pc, with_pictures=True) if each.id == "Qwen3.8-Flash-Next")
    flags = {quant.quant: quant.flag for quant in offer.quants if quant.quant.startswith("GSQ-RCO-")}

    assert "Q2_0, which llama.cpp computes slowly on x86 CPUs" in flags["GSQ-RCO-IQ3_S"]
    assert len(flags) == 4
    assert all(flags.values())


def test_an_uploader_for_another_program_says_which(catalog: Catalog) -> None:
    repository = catalog.repository("prism-ml/Ternary-Bonsai-2-27B-gguf")
    assert repository is not None
    flags = [find_flag(catalog, repository, file) for file in repository.files if file.kind == "model"]
    assert all("PrismML-Eng/llama.cpp" in each for each in flags)
    assert any("PrismML's llama.cpp" in line for line in others_of(catalog, "Qwen3.8-27B")["prism-ml"].sentences)


def test_no_offer_is_a_file_that_only_helps_models(catalog: Catalog) -> None:
    for offer in make_offers(catalog, Pc(ram_bytes=64 * GIB), with_pictures=True):
        assert not [quant.path for quant in offer.quants if is_helper_name(quant.path)]
