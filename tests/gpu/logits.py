"""Computes the logits of a model for fixed questions, in a process of its own: python -m tests.gpu.logits REQUEST.json

First the model's own most likely answers are written. Another run then follows these answers token by token, whatever
it finds most likely itself, so that the logits of both belong to the same text. Where each of its most likely tokens is
the one that follows, it would have written the same answers.
"""

import ctypes
import sys
import time
from pathlib import Path

import llama_cpp.llama_cpp as C  # noqa: N812
import msgspec
import numpy as np

from qwendesk.core.generation_options import GenerationOptions
from qwendesk.core.messages import Message, TextPart
from qwendesk.core.options import DecidedOptions
from qwendesk.engine.protocol import Allocation, Generate
from qwendesk.engine.worker.loader import Session, load
from qwendesk.engine.worker.log import EngineLog
from qwendesk.engine.worker.request_layout import layout_of
from tests.engine.worker.process import image_part


class Question(msgspec.Struct, frozen=True):
    text: str
    thinking: bool = False
    picture: str = ""
    """Path of a picture; "" for none."""


class Request(msgspec.Struct, frozen=True, kw_only=True):
    options: DecidedOptions
    questions: tuple[Question, ...]
    max_tokens: int
    out: str
    """Where the tokens and logits go: arrays "tokens0", "logits0", "tokens1", ... of numpy."""
    follow: str = ""
    """Such a file of another run, whose tokens are fed; "" for the model's own."""


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """Printed as the last line of standard output."""

    allocations: tuple[Allocation, ...]
    load_s: float
    prompt_tokens: int
    prompt_s: float
    decoded_tokens: int
    decode_s: float


def compute(session: Session, request: Request) -> Outcome:
    """Write the tokens and logits of every question to `request.out`."""
    known = np.load(request.follow) if request.follow else None
    arrays: dict[str, np.ndarray] = {}
    prompt_tokens = decoded = 0
    prompt_s = decode_s = 0.0
    for number, question in enumerate(request.questions):
        started = time.monotonic()
        position, n_tokens = _read_prompt(session, question)
        logits = [_logits(session)]
        read = time.monotonic()
        tokens = [] if known is None else known[f"tokens{number}"].tolist()
        for index in range(request.max_tokens if known is None else len(tokens)):
            if known is None:
                tokens.append(int(logits[-1].argmax()))
            if index == request.max_tokens - 1 or session.model.is_end(tokens[index]):
                break
            session.model.decode([tokens[index]], position + index)
            logits.append(_logits(session))
        arrays[f"tokens{number}"], arrays[f"logits{number}"] = np.array(tokens), np.array(logits)
        prompt_tokens, decoded = prompt_tokens + n_tokens, decoded + len(tokens)
        prompt_s, decode_s = prompt_s + read - started, decode_s + time.monotonic() - read
    np.savez(request.out, **arrays)
    return Outcome(
        allocations=session.report.allocations,
        load_s=session.report.load_s,
        prompt_tokens=prompt_tokens,
        prompt_s=prompt_s,
        decoded_tokens=decoded,
        decode_s=decode_s,
    )


def _read_prompt(session: Session, question: Question) -> tuple[int, int]:
    """Process the prompt of one question. Returns the position after it and its number of tokens."""
    images = (image_part(Path(question.picture)),) if question.picture else ()
    message = Message("user", (*images, TextPart(question.text)))
    options = GenerationOptions(enable_thinking=question.thinking)
    layout = layout_of(session, (message,), Generate(id=0, messages=(message,), options=options), lambda _event: None)
    session.cache.clear()
    cache = session.cache
    for step in layout.steps(0, session.model.n_ubatch):
        if step.image_chunk is not None:
            assert session.vision is not None
            session.vision.decode(step.image_chunk, cache.position)
            cache.append(step.image_chunk.item)
        else:
            tokens = [item for item in step.items if isinstance(item, int)]
            session.model.decode(tokens, cache.position, rows=int(step.is_last))
            cache.append(*tokens)
    return cache.position, layout.n_tokens


def _logits(session: Session) -> np.ndarray:
    values = C.llama_get_logits_ith(session.model.ctx, -1)
    return np.ctypeslib.as_array(ctypes.cast(values, ctypes.POINTER(ctypes.c_float)), (session.model.n_vocab,)).copy()


def main() -> None:
    request = msgspec.json.decode(Path(sys.argv[1]).read_bytes(), type=Request)
    log = EngineLog()
    log.install()
    C.llama_backend_init()
    session = load(request.options, log, lambda _stage, _share: None, lambda: False)
    outcome = compute(session, request)
    session.close()
    print(msgspec.json.encode(outcome).decode())


if __name__ == "__main__":
    main()
