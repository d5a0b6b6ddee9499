"""JSON of others is decoded in one place, which no content surprises."""

import ast
from pathlib import Path
from typing import Any

import msgspec
import pytest

import qwendesk
from qwendesk.core.json_decoding import MOST_DEPTH, decode_json

_PACKAGE = Path(qwendesk.__file__).parent
_OWN = {
    "core/json_decoding.py",
    "chat/view/chat_switcher.py", "chat/view/answer/highlight.py", "decoding/main.py", "decoding/process.py",
    "engine/worker/text_score.py", "mcp/host/offers.py",
    "toolbox/confinement/confined_run.py",
}  # fmt: skip
"""These decode what another process of the app has written, or their own JSON."""
_CAREFUL = {
    "engine/worker/call_parser.py",
    "mcp/pasted_servers.py",
}
"""These need what only the standard library tells, and catch all that it raises."""


@pytest.mark.parametrize(
    "content",
    [b"", b"[", b'{"a\xff": 1}', b"[" * 100_000, b"[" * (MOST_DEPTH + 1) + b"1" + b"]" * (MOST_DEPTH + 1), b"NaN",
     b"1e999", b"9" * 309, b"-" + b"9" * 309, b"9" * 5000, b'{"a": [[' + b"9" * 400 + b"]]}", "[\ud800"],
)  # fmt: skip
def test_every_kind_of_damage_is_a_decode_error(content: bytes | str) -> None:
    with pytest.raises(msgspec.DecodeError):
        decode_json(content)
    with pytest.raises(msgspec.DecodeError):
        decode_json(content, dict[str, int | list[object]])


@pytest.mark.parametrize(
    ("content", "value"),
    [
        (b'\xef\xbb\xbf{"a": 1, "a": 2}', {"a": 2}),
        ("\ufeff[1]", [1]),
        (b'"x\\ud83d\\ude00"', "x\U0001f600"),
        (b'"x\\ud83d"', "x\ufffd"),
        (b'["\\udc00\\ud83d", "\\\\ud83d"]', ["\ufffd\ufffd", "\\ud83d"]),
        ('"\ud83d"', "\ufffd"),
        (b"9" * 308, int("9" * 308) if int("9" * 308) <= 2**1024 else None),
        (b"[" * MOST_DEPTH + b"1" + b"]" * MOST_DEPTH, None),
    ],
)
def test_what_json_can_hold_is_decoded(content: bytes | str, value: Any) -> None:
    decoded = decode_json(content)

    assert value is None or decoded == value


def test_json_is_decoded_as_its_type() -> None:
    assert decode_json(b'{"a": [1, 2]}', dict[str, tuple[int, ...]]) == {"a": (1, 2)}
    assert decode_json(b'{"1": "2"}', dict[int, int], strict=False) == {1: 2}
    with pytest.raises(msgspec.ValidationError):
        decode_json(b'{"1": "2"}', dict[int, int])


def test_foreign_json_is_decoded_nowhere_else() -> None:
    calls = ("json.loads", "msgspec.json.decode")
    found = {
        path.relative_to(_PACKAGE).as_posix()
        for path in _PACKAGE.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call) and ast.unparse(node.func) in calls
    }

    assert found == _OWN | _CAREFUL
