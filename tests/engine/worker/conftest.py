"""The demo model's real vocabulary and template, without its weights."""

import contextlib
import ctypes
from collections.abc import Iterator
from pathlib import Path

import llama_cpp.llama_cpp as C  # noqa: N812
import msgspec
import pytest

from qwendesk.engine.worker.prompt import Vocabulary
from qwendesk.engine.worker.template import ChatTemplate
from tests.engine.worker.process import WorkerProcess, demo_options, worker_process
from tests.engine.worker.templates import compiled

_DEMO = Path(__file__).parents[3] / "resources" / "demo" / "qwendesk-demo-Q8_0.gguf"
_SPECIAL = C.LLAMA_TOKEN_ATTR_CONTROL | C.LLAMA_TOKEN_ATTR_USER_DEFINED


class Demo(msgspec.Struct, frozen=True):
    """The demo's tokenizer, as llama.cpp has it."""

    vocab: ctypes.c_void_p
    vocabulary: Vocabulary
    template_source: str
    pieces: dict[int, bytes]

    def __repr__(self) -> str:
        return "demo"

    @property
    def template(self) -> ChatTemplate:
        return compiled(self.template_source)

    @property
    def special_ids(self) -> set[int]:
        return {*self.vocabulary.control.values(), *self.vocabulary.user_defined.values()}

    def tokenize(self, text: str, *, parse_special: bool) -> list[int]:
        return _tokenize(self.vocab, text, parse_special=parse_special)

    def detokenize(self, ids: list[int] | tuple[int, ...]) -> str:
        return b"".join(self.pieces[token] for token in ids).decode("utf-8")


def _tokenize(vocab: ctypes.c_void_p, text: str, *, parse_special: bool) -> list[int]:
    raw = text.encode()
    room = (C.llama_token * (len(raw) + 8))()
    n_tokens = C.llama_tokenize(vocab, raw, len(raw), room, len(room), False, parse_special)
    assert n_tokens >= 0
    return list(room[:n_tokens])


def _piece(vocab: ctypes.c_void_p, token: int) -> bytes:
    buffer = ctypes.create_string_buffer(256)
    length = C.llama_token_to_piece(vocab, token, buffer, len(buffer), 0, True)
    assert length >= 0
    return buffer.raw[:length]


@contextlib.contextmanager
def open_demo() -> Iterator[Demo]:
    C.llama_backend_init()
    params = C.llama_model_default_params()
    params.vocab_only = True
    model = C.llama_model_load_from_file(str(_DEMO).encode(), params)
    assert model
    vocab = C.llama_model_get_vocab(model)
    pieces = {token: _piece(vocab, token) for token in range(C.llama_vocab_n_tokens(vocab))}
    control, user_defined = (
        {pieces[token].decode(): token for token in pieces if C.llama_vocab_get_attr(vocab, token) & kind}
        for kind in (C.LLAMA_TOKEN_ATTR_CONTROL, C.LLAMA_TOKEN_ATTR_USER_DEFINED)
    )
    source = ctypes.create_string_buffer(100_000)
    assert C.llama_model_meta_val_str(model, b"tokenizer.chat_template", source, len(source)) > 0
    vocabulary = Vocabulary(control, user_defined, lambda text: _tokenize(vocab, text, parse_special=False))
    yield Demo(vocab, vocabulary, source.value.decode(), pieces)
    C.llama_model_free(model)


@pytest.fixture(scope="session")
def demo() -> Iterator[Demo]:
    with open_demo() as demo:
        yield demo


@pytest.fixture(scope="module")
def worker() -> Iterator[WorkerProcess]:
    """A worker with the demo model, for all tests of a file."""
    with worker_process() as process:
        process.load(demo_options())
        yield process
