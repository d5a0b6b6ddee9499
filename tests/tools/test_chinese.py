"""The Chinese texts hold to one typography and to the terms of docs/translating.md."""

import re
from collections.abc import Iterator, Mapping
from types import MappingProxyType

import pytest

from qwendesk.core.translation import languages_folder, read_language

_HAN = "\u3400-\u9fff"
_MARKS = "。，、；：？！“”（）"
# Addresses and examples of what is typed keep their own marks.
_TYPED = re.compile(r"https?://\S+|`[^`]*`|\{\"mcpServers\".*?\}\}\}|\[\"-y\", \"package\"\]")
_FAULTS = MappingProxyType(
    {
        "a narrow mark after a Chinese character": f"[{_HAN}”）][,.:;!?]",
        "a narrow bracket beside a Chinese character": rf"[{_HAN}]\(|\)[{_HAN}]",
        "no blank between Chinese and Latin letters or numbers": f"[{_HAN}][A-Za-z0-9`]|[A-Za-z0-9`%][{_HAN}]",
        "a blank beside a wide mark": f"[{_MARKS}] (?!·)|(?<!·) [{_MARKS}]",
        "a blank between Chinese characters": f"[{_HAN}] [{_HAN}]",
        "quotation marks other than “”": '[「」『』"]',
        "the polite you": "您",
        "an ellipsis of six dots": "……",
    }
)
_NO_WORDS = re.compile(r"\{\w+\}|`[^`]*`|--[\w-]+|[\w/]*columns for[^.]*|owner/name:quant")
"""Places for values, commands, flags, an example and the heads of llama-bench's table."""
_TERMS: Mapping[str, str] = MappingProxyType(
    {
        r"\btokens?\b(?! drafts)": "token|令牌",
        r"\b[Cc]ontexts?\b": "上下文",
        r"\bVRAM\b|\b[Vv]ideo memory\b": "显存",
        r"(?<!V)\bRAM\b": "内存",
        r"\b[Qq]uants?\b": "量化",
        r"\b[Ee]xperts?\b": "专家",
        r"\b[Ee]ngines?\b": "引擎",
        r"\b[Tt]hinking\b": "思考",
        r"\b[Ss]ystem prompt\b": "系统提示词",
        r"\b[Cc]hat template\b": "对话模板",
        r"\b[Tt]his PC('s)?\b": "本机",
        r"\b[Vv]ision file\b": "视觉文件",
        r"\b[Dd]raft head\b": "草稿头",
        r"\b[Ss]hards?\b": "分片",
        r"\b[Aa]ccess token\b": "访问令牌",
        r"\bKV cache\b": "KV 缓存",
        r"\b[Pp]resets?\b": "预设",
        r"\b[Pp]rofiles?\b": "配置",
        r"\b[Uu]ploaders?\b": "上传者",
        r"\b[Rr]epositor(y|ies)\b": "仓库",
        r"\b[Ii]ncognito\b": "无痕",
        r"\b[Mm]odels?\b": "模型",
    }
)
"""The Chinese term of each English one, as a pattern."""


def texts() -> Iterator[tuple[str, str]]:
    """Yield each English text with its Chinese one."""
    language = read_language(languages_folder() / "zh_Hans.json")
    assert language is not None
    for source, text in language.texts.items():
        yield source, text if isinstance(text, str) else text[0]


@pytest.mark.parametrize("fault", _FAULTS)
def test_typography(fault: str) -> None:
    wrong = [text for _, text in texts() if re.search(_FAULTS[fault], _TYPED.sub("X", text))]
    assert wrong == []


def test_quotation_marks_and_brackets_are_pairs() -> None:
    wrong = [text for _, text in texts() if text.count("“") != text.count("”") or text.count("（") != text.count("）")]
    assert wrong == []


@pytest.mark.parametrize("term", _TERMS)
def test_a_term_has_one_word(term: str) -> None:
    wrong = [
        f"{source} | {text}"
        for source, text in texts()
        if re.search(term, _NO_WORDS.sub("", source)) and not re.search(_TERMS[term], text)
    ]
    assert wrong == []
