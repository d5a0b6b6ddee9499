"""What translators get is what the window says, and the languages that are here are complete."""

import ast
import re
from collections.abc import Iterable
from pathlib import Path

import pytest

from qwendesk.core.translation import Language, languages_folder, read_language
from tools import i18n


@pytest.mark.parametrize("file", sorted(languages_folder().glob("*.json")), ids=lambda file: file.stem)
def test_language_is_complete(file: Path, caplog: pytest.LogCaptureFixture) -> None:
    language = read_language(file)
    assert language is not None
    assert caplog.text == ""
    missing = i18n.problems(language, i18n.sources())
    help_text = f"`python -m tools.i18n update {file.stem}`, then fill in:\n"
    assert not missing, help_text + "\n".join(missing)


def test_texts_of_calls_marks_and_tables_are_found() -> None:
    texts = i18n.sources()
    assert "Send" in texts  # tr
    assert "{0} page|{0} pages" in texts  # tr_n
    assert "Most downloaded" in texts  # mark
    assert "Context length" in texts  # a table of options
    assert "Regenerate the last answer" in texts  # the table of commands
    assert "For small GPUs and laptops." in texts  # the catalog


# Speeds in words, which Chinese and Japanese don't put between spaces; "word" alone is a part of passwords.
_IN_WORDS = re.compile(r"\bwords? (?:a|per) second\b|词/秒|每秒.*词")


def without_tokens(texts: Iterable[str]) -> list[str]:
    """Return the texts that give a speed in words but not in tokens."""
    return [text for text in texts if _IN_WORDS.search(text) and "tok/s" not in text]


def test_a_speed_in_words_has_its_tokens_and_only_where_a_language_has_words() -> None:
    assert without_tokens(["About {0} words a second", "{0} words a second ({1} tok/s)"]) == [
        "About {0} words a second"
    ]
    assert without_tokens(i18n.sources()) == []
    chinese = read_language(languages_folder() / "zh_Hans.json")
    assert chinese is not None
    texts = [text for each in chinese.texts.values() for text in ([each] if isinstance(each, str) else each)]
    assert [text for text in texts if _IN_WORDS.search(text)] == []


def test_every_text_is_written_out_where_it_is_translated_or_declared_and_marked() -> None:
    odd = []
    for file in sorted((i18n.ROOT / "qwendesk").rglob("*.py")):
        for call in i18n.calls(file.read_text(encoding="utf-8")):
            first = call.args[0]
            if isinstance(first, ast.JoinedStr | ast.BinOp) or (
                i18n.name_of(call) != "tr" and not isinstance(first, ast.Constant)
            ):
                odd.append(f"{file.relative_to(i18n.ROOT)}:{call.lineno}: {ast.unparse(call)[:60]}")
    assert odd == []


def test_update_keeps_translations_and_removes_unused_ones() -> None:
    language = Language(name="Test", texts={"Send": "Schick", "Gone": "Weg"})
    updated = i18n.updated(language, {"New": "a.py:1", "Send": "a.py:2"})
    assert updated.texts == {"New": "", "Send": "Schick"}
    assert i18n.problems(updated, {"New": "a.py:1", "Send": "a.py:2"}) == ["a.py:1: not translated: 'New'"]
