"""Which changes of llama.cpp's headers the worker can live with, tried on headers of the pinned release.

They are those that llama-cpp-python installs, where it was built here, and ones that are written from our table.
"""

import importlib.util
import re
from pathlib import Path

import pytest

from qwendesk.core.engine_abi import (
    AbiReport,
    EngineAbi,
    check_abi,
    check_against_all,
    encode_abi,
    has_optional,
    known_abis,
    read_abi,
)
from qwendesk.engines.c_headers import HEADER_NAMES, read_headers
from tests.engines.made_headers import headers_of

PIN = known_abis()[0]
_FROM_TABLE, _INSTALLED = "table", "installed"


def installed_headers() -> list[str]:
    package = importlib.util.find_spec("llama_cpp")
    assert package is not None
    assert package.origin is not None
    folder = Path(package.origin).parent.parent / "include"
    return [(folder / name).read_text(encoding="utf-8") for name in HEADER_NAMES if (folder / name).is_file()]


@pytest.fixture(params=[_FROM_TABLE, _INSTALLED])
def headers(request: pytest.FixtureRequest) -> str:
    """The pinned release's headers as one text, with "int32" written as "int32_t"."""
    if request.param == _FROM_TABLE:
        return re.sub(r"\b(u?int(?:8|16|32|64)) (?=\w+;)", r"\1_t ", headers_of(PIN))
    texts = installed_headers()
    if not texts:
        pytest.skip("llama-cpp-python brought no headers")
    # The package installs no llama-ext.h.
    lacking = {name: sign for name, sign in PIN.functions.items() if not any(name in text for text in texts)}
    return "\n".join([*texts, headers_of(EngineAbi(release="", functions=lacking, structs={}, constants={"NO": 0}))])


def report_on(text: str) -> AbiReport:
    return check_abi(PIN, found_in(text))


def found_in(text: str) -> EngineAbi:
    return read_headers([text]).abi("b99999", PIN)


def changed(text: str, pattern: str, new: str) -> str:
    """Return `text` with the first place that matches `pattern` replaced, which must be there."""
    result, n_found = re.subn(pattern, new, text, count=1)
    assert n_found == 1, pattern
    assert result != text
    return result


def test_headers_of_the_pinned_release_fit(headers: str) -> None:
    report = report_on(headers)

    assert report.sentences == ()
    assert report.notes == ()
    assert report.fits
    assert found_in(headers).structs == PIN.structs


BAD = {
    "a field is added": (
        r"u?int32_t\s+n_batch;", "uint32_t n_batch; uint32_t n_novel;",
        "The field llama_context_params.n_novel of type uint32 was added.",
    ),
    "a field is removed": (
        r"int32_t\s+main_gpu;", "", "The field llama_model_params.main_gpu was removed.",
    ),
    "fields change places": (
        r"bool\s+offload_kqv;[^\n]*\n\s*bool\s+no_perf;", "bool no_perf;\n bool offload_kqv;",
        "The field llama_context_params.offload_kqv moved from byte 129 to byte 130.",
    ),
    "a field has another type": (
        r"float\s+rope_freq_base;", "int32_t rope_freq_base;",
        "The field llama_context_params.rope_freq_base now has the type int32 instead of float.",
    ),
    "an enum is numbered anew": (
        r"LLAMA_SPLIT_MODE_LAYER\s*=\s*1", "LLAMA_SPLIT_MODE_LAYER = 7",
        "The constant LLAMA_SPLIT_MODE_LAYER is now 7 instead of 1.",
    ),
    "a function is gone": (
        r"\bllama_memory_seq_rm\b", "llama_memory_remove", "llama_memory_seq_rm is missing.",
    ),
    "a function takes something else": (
        r"(llama_sampler_init_temp)\s*\(\s*float\b", r"\1(double",
        "The function llama_sampler_init_temp is now struct llama_sampler * (double) instead of "
        "struct llama_sampler * (float).",
    ),
    "a struct passed by value is longer": (
        r"(struct\s+llama_context\s*\*\s*ctx_other;)", r"\1 int64_t novel;",
        "The field llama_context_params.novel of type int64 was added.",
    ),
    "the elements of an array that the worker lays out itself are longer": (
        r"(float\s+logit;[^}]*float\s+p;)", r"\1 int64_t novel;",
        "The field llama_token_data.novel of type int64 was added.",
    ),
    "a field is put before others of a struct passed by pointer": (
        r"(struct mtmd_input_text \{)", r"\1 int64_t novel;",
        "The field mtmd_input_text.novel of type int64 was added.",
    ),
}  # fmt: skip


@pytest.mark.parametrize("change", BAD)
def test_a_change_that_would_break_calls_is_refused_by_name(headers: str, change: str) -> None:
    pattern, new, sentence = BAD[change]

    report = report_on(changed(headers, pattern, new))

    assert not report.fits
    assert sentence in report.sentences
    assert len(report.sentences) == (2 if change == "fields change places" else 1)


GOOD = {
    "an enum gets another value": (r"(LLAMA_SPLIT_MODE_TENSOR\s*=\s*3,)", r"\1 LLAMA_SPLIT_MODE_NOVEL = 4,"),
    "there is another function": (r"(LLAMA_API\s+void\s+llama_free\s*\()", r"LLAMA_API void llama_novel(void); \1"),
}


@pytest.mark.parametrize("change", GOOD)
def test_what_the_worker_does_not_use_may_be_added(headers: str, change: str) -> None:
    report = report_on(changed(headers, *GOOD[change]))

    assert report.fits
    assert report.notes == ()


def test_a_struct_passed_by_pointer_may_get_a_field_at_its_end(headers: str) -> None:
    text = changed(headers, r"(bool\s+parse_special;)(?=\s*\})", r"\1 int64_t novel;")

    report = report_on(text)

    assert report.fits
    assert [note.sentence for note in report.notes] == ["The field mtmd_input_text.novel of type int64 was added."]
    layout = found_in(text).structs["mtmd_input_text"]
    assert (layout.size, layout.fields[-1].offset) == (32, 24)


@pytest.mark.parametrize(
    ("pattern", "new"),
    [
        (r"\bggml_flash_attn_ext\b", "ggml_flash_attn_novel"),
        (r"(ggml_row_size)\s*\([^)]*\)", r"\1(double)"),
        (r"(struct\s+ggml_init_params\s*\{)", r"\1 int64_t novel;"),
        (r"struct\s+ggml_init_params\b", "struct ggml_novel_params"),
    ],
    ids=["a function is gone", "a function takes something else", "a struct is longer", "a struct is gone"],
)
def test_what_only_a_measurement_needs_refuses_no_engine(headers: str, pattern: str, new: str) -> None:
    found = found_in(re.sub(pattern, new, headers))
    report = check_abi(PIN, found)

    assert report.fits
    assert report.notes
    assert not has_optional(PIN, found)
    assert has_optional(PIN, found_in(headers))


def test_a_changed_struct_passed_by_value_fits_once_its_table_is_known(headers: str) -> None:
    text = changed(headers, *BAD["a field is added"][:2])
    newer = found_in(text)

    assert check_against_all((newer, PIN), found_in(text)).known_release == "b99999"
    assert check_against_all((newer, PIN), found_in(text)).fits
    assert check_against_all((newer, PIN), found_in(headers)).known_release == PIN.release


def test_the_most_similar_release_is_named_when_none_fits() -> None:
    other = found_in(changed(headers_of(PIN), r"\bllama_free\b", "llama_novel"))
    both = changed(changed(headers_of(PIN), r"\bllama_free\b", "llama_novel"), r"\bllama_decode\b", "llama_novel_2")

    report = check_against_all((PIN, other), found_in(both))

    assert report.known_release == "b99999"
    assert report.sentences == ("llama_decode is missing.",)


def test_other_defaults_are_named_and_impossible_ones_refused() -> None:
    ours = PIN.defaults["llama_context_params"]
    assert (ours["n_ctx"], ours["offload_kqv"], ours["flash_attn_type"]) == (512, True, -1)

    def with_defaults(**values: float) -> AbiReport:
        found = found_in(headers_of(PIN))
        defaults = {"llama_context_params": {**ours, **values}}
        return check_abi(PIN, EngineAbi(**{name: getattr(found, name) for name in found.__struct_fields__} | {
            "defaults": defaults}))  # fmt: skip

    assert with_defaults().notes == ()
    larger = with_defaults(n_ctx=4096)
    assert larger.fits
    assert [note.sentence for note in larger.notes] == [
        "The default of llama_context_params.n_ctx is now 4096 instead of 512."
    ]
    assert not with_defaults(offload_kqv=72).fits
    assert not with_defaults(rope_freq_base=float("nan")).fits


def test_a_table_is_written_and_read_back(tmp_path: Path) -> None:
    file = tmp_path / "abi.json"
    file.write_bytes(encode_abi(PIN))

    assert read_abi(file) == PIN
    assert (tmp_path / "abi.json").read_bytes() == encode_abi(read_abi(file))
