"""Every finding, detail and fix has words that can be filled in, in each language."""

import re
from collections.abc import Iterator
from typing import get_args

import pytest

from qwendesk.core.translation import install_translator, languages_folder, read_language
from qwendesk.hub.finding_texts import (
    CHIPS,
    DETAILS,
    FINDINGS,
    FIXES,
    SOURCES,
    Chip,
    DetailCode,
    DetailSource,
    FindingCode,
    FixCode,
    Value,
    shown_value,
)
from qwendesk.hub.findings import Detail, Finding, FindingFix, finding_as_json

SAMPLES: dict[str, Value] = {
    "size": 22_011_707_392,
    "names": ("a.gguf", "b.gguf", "c.gguf", "d.gguf", "e.gguf"),
    "source": "catalog",
    "date": "2026-02-27",
    "reason": "It can't be read.",
    "missing_size": 1_000,
    "whole_size": 5_120,
    "catalog_text": "A note.",
} | dict.fromkeys(("n_bytes", "expected", "count", "total", "number", "stated", "width", "needed", "file_type"), 12_345)


@pytest.fixture(params=["en", "de"])
def language(request: pytest.FixtureRequest) -> Iterator[str]:
    install_translator(read_language(languages_folder() / "de.json") if request.param == "de" else None)
    yield request.param
    install_translator(None)


def sample_values(text: str) -> dict[str, Value]:
    return {name: SAMPLES.get(name, f"<{name}>") for name in re.findall(r"{(\w+)}", text)}


def test_every_code_has_words() -> None:
    assert {code for code, _ in FINDINGS} == set(get_args(FindingCode))
    assert set(DETAILS) == set(get_args(DetailCode))
    assert set(FIXES) == set(get_args(FixCode))
    assert set(SOURCES) == set(get_args(DetailSource))
    assert set(CHIPS) == set(get_args(Chip))


@pytest.mark.parametrize(("code", "case"), FINDINGS)
def test_message_contains_its_values(language: str, code: FindingCode, case: str) -> None:
    values = sample_values(FINDINGS[code, case].message)

    message = Finding(code=code, case=case, values=values).message

    assert message.endswith(".")
    assert not re.search(r"[{}]", message)
    assert all(shown_value(name, value) in message for name, value in values.items())


@pytest.mark.parametrize("code", DETAILS)
def test_detail_contains_its_values(language: str, code: DetailCode) -> None:
    values = sample_values(DETAILS[code])

    text = Detail(code, values).text

    assert not re.search(r"[{}]", text)
    assert all(shown_value(name, value) in text for name, value in values.items())


@pytest.mark.parametrize("code", FIXES)
def test_fix_label_names_the_size_if_known(language: str, code: FixCode) -> None:
    for n_bytes in (0, 22_011_707_392):
        label = FindingFix(code, "Qwen/M", "m.gguf", n_bytes, name="UD-Q4_K_L").label
        assert label
        assert not re.search(r"[{}]", label)
        assert ("20.5 GB" in label) is bool(n_bytes and FIXES[code].label_with_size)


def test_values_are_formatted_for_readers() -> None:
    assert shown_value("size", 22_011_707_392) == "20.5 GB"
    assert shown_value("count", 12_345) == "12,345"
    assert shown_value("names", ("a", "b")) == "a, b"
    assert shown_value("names", ("a", "b", "c", "d", "e")) == "a, b, c and 2 more"
    assert shown_value("source", "hub") == "Hugging Face"
    assert shown_value("architecture", "") == "unknown"


def test_exported_finding_names_its_fix() -> None:
    fix = FindingFix("use_template", "Qwen/M", "chat_template.jinja")
    found = Finding(code="broken-tool-template", details=(Detail("template"),), fix=fix)

    assert finding_as_json(found) == {
        "code": "broken-tool-template",
        "severity": "warning",
        "message": found.message,
        "fix": {
            "kind": "fetch_template",
            "label": "Use the template of Qwen/M",
            "repo": "Qwen/M",
            "path": "chat_template.jinja",
        },
        "evidence": found.evidence,
    }
