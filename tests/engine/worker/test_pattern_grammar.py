"""Patterns of schemas: what their grammar allows is valid JSON that matches, and what can't be written is refused."""

import json
import re

import pytest

from qwendesk.core.errors import BadRequest
from qwendesk.engine.worker.schema_grammar import json_grammar, pattern_rule
from tests.engine.worker.conftest import Demo
from tests.engine.worker.test_call_grammar import take
from tests.engine.worker.test_token_grammar import grammar_of

MATCHES: dict[str, tuple[list[str], list[str]]] = {
    r"^a|b$": (["a", "ax", "xb"], ["xa", "bx"]),
    r"^a$|^b$": (["a", "b"], ["ab", "a$", ""]),
    r"^$|^\d+$": (["", "42"], ["x"]),
    r"abc": (["abc", "xabcx"], ["ab"]),
    r"^https?://": (["http://x.example", "https://"], ["ftp://x"]),
    r"^https:\/\/[^\/]+\/$": (["https://x.example/"], ["https:///"]),
    r"\.json$": (["a.json", '".json'], ["a.json5", "json"]),
    r"^\S+$": (["größe"], ["a b", ""]),
    r"^[ -~]+$": (["a b~"], ["ä"]),
    r"^[\w.+-]+@[\w-]+\.[\w.-]+$": (["a.b+c@d-e.example"], ["a@b", "a b@c.de"]),
    r"^[a-z]{1,512}$": (["a" * 512], ["", "a" * 513, "A"]),
    r"^.{0,5000}$": (["", "x" * 30], []),
    r"^(?:a|b(?<year>\d{2}))?$": (["", "a", "b07"], ["b", "b7"]),
    r'^"\\\d*?"$': (['"\\7"', '"\\"'], ["7"]),
    r"^[^\s,;]*$": (["ab", ""], ["a b", "a,b"]),
    r"^[A-Z\u00c0-\u00dc][^\W\d_]*$": (["Ärger", "Ab"], ["ab", "A1"]),
    r"^\x41\u0042\t[\s\S]{2}$": (["AB\t..", "AB\t- "], ["AB"]),
    r"^[-a]$": (["-", "a"], ["b"]),
    r"^[\d-]{2}$": (["1-"], ["a-"]),
    r"^a{,2}$": (["a{,2}"], ["aa"]),
    r"": (["", "anything"], []),
}
UNKNOWN = [
    "^(?!a).*$", "(?<=a)b", r"\bword\b", r"^(a)\1$", r"^\p{L}+$", "(a", "a)", "[a", "*", "a**", "^*", "x$y", "a^", "[]",
    "(^a|b)", "[z-a]", "a{1001}", "a{5,2}", "^" + "(" * 600 + "a" + ")" * 600, "x" * 5001,
    "(a?){200}b", "[\\n]", "|".join(f"{number}x" for number in range(2000)),
]  # fmt: skip


@pytest.mark.parametrize("pattern", MATCHES)
def test_texts_that_match_are_allowed_and_others_are_not(demo: Demo, pattern: str) -> None:
    grammar = grammar_of(demo, json_grammar(json.dumps({"type": "string", "pattern": pattern})))
    end = demo.vocabulary.control["<|im_end|>"]

    def is_allowed(text: str) -> bool:
        tokens = [*demo.tokenize(json.dumps(text, ensure_ascii=False), parse_special=False), end]
        return take(grammar, tokens) == len(tokens)

    valid, invalid = MATCHES[pattern]
    assert [text for text in valid if not is_allowed(text)] == []
    assert [text for text in invalid if is_allowed(text)] == []
    if "{," not in pattern and "?<" not in pattern:  # these differ in Python
        assert all(re.search(pattern, text) for text in valid)
        assert not any(re.search(pattern, text) for text in invalid)
    grammar.close()


@pytest.mark.parametrize("pattern", UNKNOWN, ids=lambda text: text[:20])
def test_what_a_grammar_cant_have_is_refused(pattern: str) -> None:
    with pytest.raises((ValueError, BadRequest)):
        pattern_rule(pattern, "char*")


def test_repetitions_of_repetitions_are_written_once(demo: Demo) -> None:
    grammar_of(demo, json_grammar('{"pattern": "^((a{1000}){1000}){1000}$"}')).close()
