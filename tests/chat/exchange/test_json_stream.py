"""JSON read in chunks gives the same values as JSON read at once."""

import io
import json
from typing import Any

import hypothesis
import hypothesis.strategies as st
import pytest

from qwendesk.chat.exchange import json_stream
from qwendesk.chat.exchange.json_stream import BadJson, FileTooLong, JsonStream, ValueTooLong

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=30,
)


def stream_of(text: str | bytes, limit_bytes: int = 1 << 20) -> JsonStream:
    return JsonStream(
        io.BytesIO(text if isinstance(text, bytes) else text.encode("utf-8", "surrogatepass")), limit_bytes
    )


def read_all(stream: JsonStream) -> Any:
    """The value here, taken apart by members and elements as far as there are any."""
    match stream.peek():
        case b"{":
            return {key: read_all(stream) for key in stream.members()}
        case b"[":
            return [read_all(stream) for _ in stream.elements()]
    return json.loads(stream.raw(1 << 20))


@hypothesis.given(VALUES, st.integers(1, 9), st.sampled_from([None, 2]), st.booleans())
@hypothesis.settings(suppress_health_check=[hypothesis.HealthCheck.function_scoped_fixture])
def test_value_is_the_same_for_every_chunk_size(
    monkeypatch: pytest.MonkeyPatch, value: Any, chunk_bytes: int, indent: int | None, ascii_only: bool
) -> None:
    monkeypatch.setattr(json_stream, "_CHUNK_BYTES", chunk_bytes)
    text = json.dumps(value, indent=indent, ensure_ascii=ascii_only)

    assert read_all(stream_of(text)) == value
    assert json.loads(stream_of(text).raw(1 << 20)) == value
    behind = stream_of(f" {text} ")
    behind.skip()
    behind.check_end()


@pytest.mark.parametrize(
    "text", ["", "{", "[1", '{"a"', '{"a":', '{"a":1', '{"a":1,}', "[1 2]", '["a', '["a\\', "{1:2}", "[,]", "[" * 600]
)
def test_invalid_json_is_refused(text: str) -> None:
    stream = stream_of(text)
    with pytest.raises(BadJson):
        list(stream.elements() if text.startswith("[") else stream.members())


def test_too_long_value_is_skipped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(json_stream, "_CHUNK_BYTES", 16)
    stream = stream_of(json.dumps({"long": ["x" * 500, {"y": "]}"}], "next": "[{"}))
    found = {}
    for key in stream.members():
        try:
            found[key] = stream.raw(100)
        except ValueTooLong:
            found[key] = b"too long"

    assert found == {"long": b"too long", "next": b'"[{"'}


def test_values_that_are_not_read_are_skipped() -> None:
    stream = stream_of('  {"a" : {"x": [1]} , "b":  2, "c": []}  ')

    assert list(stream.members()) == ["a", "b", "c"]
    stream.check_end()


def test_stream_above_the_limit_is_refused() -> None:
    with pytest.raises(FileTooLong):
        stream_of(b" " * 3_000_000, limit_bytes=1_000_000).peek()
