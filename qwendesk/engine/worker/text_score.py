"""Find how well a model predicts a text, and how far its distributions are from those of a base, which is saved in a
file.

Perplexity is counted as llama-perplexity counts it: the text is cut into chunks of n_ctx tokens, each is evaluated in
an empty memory, and the tokens of its second half are predicted. Logits of many rows are needed for that, so it has a
context of its own beside the session's.

It begins with a magic number, the length and CRC-32 of a header (JSON), and the header. For each chunk of the text,
one block follows, with its CRC-32 before it. A block has four arrays, for all predicted tokens of the chunk: the ids of
the likeliest tokens (uint32, the likeliest first), their log probabilities (float32), the log probability of all other
tokens together, and that of the token that comes next in the text. All numbers are little-endian.

Distributions are compared on the likeliest tokens of the base and on the rest as one. That never gives more than the
divergence over the whole vocabulary, and hardly less: the rest has a few thousandths of the probability.
"""

import contextlib
import hashlib
import math
import os
import struct
import zlib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import BinaryIO, Self, cast

import llama_cpp.llama_cpp as C
import msgspec
import numpy as np

from qwendesk.core.benchmarks import Divergence, TextScore, TextTest
from qwendesk.core.errors import BadRequest
from qwendesk.core.files import replace
from qwendesk.core.input_files import open_regular, read_bounded
from qwendesk.core.permissions import create_own
from qwendesk.core.translation import mark
from qwendesk.engine.protocol import Bench, Benched, BenchProgress, Event
from qwendesk.engine.worker import params
from qwendesk.engine.worker.chat_states import hash_model_files
from qwendesk.engine.worker.engine_calls import Aborted
from qwendesk.engine.worker.loader import Session
from qwendesk.engine.worker.model import LoadedModel
from qwendesk.engine.worker.speed_bench import BenchCancelled, cancelled

_MAGIC = b"QDBASE01"
_PREFIX = struct.Struct("<8sII")
_CRC = struct.Struct("<I")
_LONGEST_HEADER = 64 * 1024
_LONGEST_CHUNK = 2**22
# How many of the likeliest tokens are kept of each distribution.
MOST_KEPT = 512

Ids = np.ndarray[tuple[int, int], np.dtype[np.uint32]]
Logs = np.ndarray[tuple[int, ...], np.dtype[np.float32]]


class BaseHeader(msgspec.Struct, frozen=True, kw_only=True):
    """The origin of a base. A comparison needs the same tokens in the same chunks."""

    model: str
    """Name of the model's file."""
    model_hash: str
    text_sha256: str
    tokens_sha256: str
    """SHA-256 of the token ids, which differ if the vocabulary does."""
    n_vocab: int
    n_ctx: int
    n_chunks: int
    n_kept: int

    @property
    def n_rows(self) -> int:
        """How many tokens are predicted in each chunk: those of its second half but the first."""
        return self.n_ctx - self.n_ctx // 2 - 1

    @property
    def block_bytes(self) -> int:
        return self.n_rows * (8 * self.n_kept + 8)


class BaseBlock(msgspec.Struct, frozen=True, eq=False):
    """The distributions of one chunk, a row for each predicted token."""

    ids: Ids
    logs: Logs
    """Log probabilities of the ids, the same shape."""
    rest: Logs
    """Log probability of all other tokens together."""
    target: Logs
    """Log probability of the token that comes next."""

    def to_bytes(self) -> bytes:
        arrays = ((self.ids, "<u4"), (self.logs, "<f4"), (self.rest, "<f4"), (self.target, "<f4"))
        return b"".join(np.ascontiguousarray(array, dtype=kind).tobytes() for array, kind in arrays)

    @classmethod
    def from_bytes(cls, content: bytes, n_rows: int, n_kept: int) -> Self:
        size = 4 * n_rows * n_kept
        ids = np.frombuffer(content, "<u4", n_rows * n_kept).reshape(n_rows, n_kept)
        logs = np.frombuffer(content, "<f4", n_rows * n_kept, size).reshape(n_rows, n_kept)
        rest, target = (np.frombuffer(content, "<f4", n_rows, 2 * size + 4 * n_rows * index) for index in range(2))
        return cls(ids, logs, rest, target)


class BaseWriter:
    """Writes blocks to a temporary file, which gets its name when all are written."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file

    def add(self, block: BaseBlock) -> None:
        content = block.to_bytes()
        self._file.write(_CRC.pack(zlib.crc32(content)))
        self._file.write(content)


@contextlib.contextmanager
def write_base(path: Path, header: BaseHeader) -> Iterator[BaseWriter]:
    """Write a base to `path`. If the `with` block raises, nothing is left. Raise BadRequest if it can't be written."""
    encoded = msgspec.json.encode(header)
    fresh = path.with_name(f"{path.name}.{os.getpid()}.new")
    try:
        try:
            with create_own(fresh) as file:
                file.write(_PREFIX.pack(_MAGIC, len(encoded), zlib.crc32(encoded)))
                file.write(encoded)
                yield BaseWriter(file)
            replace(fresh, path)
        except BaseException:
            fresh.unlink(missing_ok=True)
            raise
    except OSError as error:
        raise BadRequest(
            mark("Base not saved"), mark("{0} can't be written: {1}."), path.name, error.strerror or str(error)
        ) from error


class BaseReader:
    """Reads the blocks of a base in order."""

    def __init__(self, file: BinaryIO, header: BaseHeader, name: str) -> None:
        self._file, self.header, self._name = file, header, name

    def next(self) -> BaseBlock:
        """Return the next block. Raise BadRequest if the file is cut or damaged."""
        header = self.header
        crc = self._file.read(_CRC.size)
        content = self._file.read(header.block_bytes)
        if len(crc) != _CRC.size or len(content) != header.block_bytes:
            raise BadRequest(mark("Base not usable"), mark("{0} is cut off. Save the base again."), self._name)
        block = BaseBlock.from_bytes(content, header.n_rows, header.n_kept)
        if _CRC.unpack(crc)[0] != zlib.crc32(content) or int(block.ids.max(initial=0)) >= header.n_vocab:
            raise BadRequest(mark("Base not usable"), mark("{0} is damaged. Save the base again."), self._name)
        return block


@contextlib.contextmanager
def open_base(path: Path) -> Iterator[BaseReader]:
    """Open a base and check its header. Raise BadRequest if it is none, or damaged, or can't be read."""
    try:
        file = open_regular(path)
    except OSError as error:
        raise BadRequest(
            mark("Base not usable"), mark("{0} can't be read: {1}."), path.name, error.strerror or str(error)
        ) from error
    with file:
        magic, length, crc = _PREFIX.unpack(file.read(_PREFIX.size).ljust(_PREFIX.size, b"\0"))
        if magic != _MAGIC or length > _LONGEST_HEADER:
            raise _foreign(path)
        content = file.read(length)
        if len(content) != length or zlib.crc32(content) != crc:
            raise BadRequest(mark("Base not usable"), mark("{0} is damaged. Save the base again."), path.name)
        try:
            header = msgspec.json.decode(content, type=BaseHeader)
        except msgspec.DecodeError as error:
            raise _foreign(path) from error
        if not (1 <= header.n_kept <= MOST_KEPT and 2 <= header.n_ctx <= _LONGEST_CHUNK):
            raise _foreign(path)
        yield BaseReader(cast(BinaryIO, file), header, path.name)


def _foreign(path: Path) -> BadRequest:
    return BadRequest(mark("Base not usable"), mark("{0} isn't a base that this version of QwenDesk saved."), path.name)


# How many rows of logits are computed at once: 64 MB for the vocabulary of Qwen3.5.
_ROWS = 64
TokenIds = np.ndarray[tuple[int, ...], np.dtype[np.int64]]
_LONGEST_TEXT = 256 * 1024**2
_SHORTEST_CHUNK = 16


def score(session: Session, request: Bench, send: Callable[[Event], None], is_cancelled: Callable[[], bool]) -> Benched:
    """Score a text. Raise BadRequest if text or base can't be used, or if it was cancelled."""
    test = request.test
    assert isinstance(test, TextTest), "speeds are measured by speed_bench.py"

    def show(done: int, total: int) -> None:
        if is_cancelled():
            raise BenchCancelled
        send(BenchProgress(id=request.id, done=done, total=total))

    session.threads.use()
    try:
        return Benched(id=request.id, result=_score(session, test, show))
    except (Aborted, BenchCancelled):
        raise cancelled() from None


def _score(session: Session, test: TextTest, show: Callable[[int, int], None]) -> TextScore:
    text = _read_text(Path(test.path))
    tokens = _tokens_of(session.model, text)
    n_chunks = len(tokens) // test.n_ctx
    n_chunks = min(n_chunks, test.most_chunks) if test.most_chunks else n_chunks
    if test.n_ctx < _SHORTEST_CHUNK or not n_chunks:
        raise BadRequest(
            mark("Text too short"),
            mark("The text has {0} tokens, and a chunk needs {1}. Choose a longer text."),
            len(tokens),
            max(test.n_ctx, _SHORTEST_CHUNK),
        )
    tokens = tokens[: n_chunks * test.n_ctx]
    header = BaseHeader(
        model=Path(session.report.options.model).name,
        model_hash=hash_model_files(session.report.options),
        text_sha256=hashlib.sha256(text).hexdigest(),
        tokens_sha256=hashlib.sha256(np.array(tokens, "<i4").tobytes()).hexdigest(),
        n_vocab=session.model.n_vocab,
        n_ctx=test.n_ctx,
        n_chunks=n_chunks,
        n_kept=min(MOST_KEPT, session.model.n_vocab),
    )
    totals = _Totals()
    with contextlib.ExitStack() as open_files:
        base = open_files.enter_context(open_base(Path(test.base))) if test.base else None
        if base is not None:
            _check_base(base.header, header)
        writer = open_files.enter_context(write_base(Path(test.save_base), header)) if test.save_base else None
        with _scoring_context(session, test.n_ctx) as context:
            for number in range(n_chunks):
                first = number * test.n_ctx
                chunk = _with_bos(session.model, tokens[first : first + test.n_ctx])
                known = base.next() if base is not None else None
                n_kept = header.n_kept if writer is not None else 0

                def show_chunk(done: int, first: int = first) -> None:
                    show(first + done, len(tokens))

                block, tops = _score_chunk(context, chunk, known, n_kept, show_chunk)
                totals.add(block, tops, known)
                if writer is not None:
                    writer.add(block)
    return totals.score(n_chunks)


def _score_chunk(
    context: LoadedModel, chunk: Sequence[int], known: BaseBlock | None, n_kept: int, show: Callable[[int], None]
) -> tuple[BaseBlock, TokenIds]:
    """Return the log probabilities of what comes next in a chunk, and of the tokens of `known`, or else of the `n_kept`
    likeliest ones; and which token is the likeliest in each row.
    """
    half, end = len(chunk) // 2, len(chunk) - 1
    C.llama_memory_clear(context.memory, True)
    for first in range(0, half, context.n_ubatch):
        piece = chunk[first : min(first + context.n_ubatch, half)]
        context.decode(piece, first, rows=0)
        show(first + len(piece))
    blocks: list[BaseBlock] = []
    tops: list[TokenIds] = []
    n_rows = min(_ROWS, context.n_ubatch)
    for first in range(half, end, n_rows):
        piece = chunk[first : min(first + n_rows, end)]
        context.decode(piece, first, rows=len(piece))
        logits = np.ctypeslib.as_array(C.llama_get_logits(context.ctx), (len(piece), context.n_vocab))
        place = slice(first - half, first - half + len(piece))
        ids = known.ids[place] if known is not None else likeliest(logits, n_kept)
        blocks.append(distributions(logits, ids, chunk[first + 1 : first + 1 + len(piece)]))
        tops.append(logits.argmax(axis=1))
        show(first + len(piece))
    return joined(blocks), np.concatenate(tops)


class _Totals:
    """Collects what is known of each predicted token."""

    def __init__(self) -> None:
        self._losses: list[Values] = []
        self._base_losses: list[Values] = []
        self._divergences: list[Values] = []
        self._same_tops: list[Values] = []

    def add(self, block: BaseBlock, tops: TokenIds, known: BaseBlock | None) -> None:
        self._losses.append(-block.target.astype(np.float64))
        if known is not None:
            self._base_losses.append(-known.target.astype(np.float64))
            self._divergences.append(divergences(known, block))
            self._same_tops.append((known.ids[:, 0] == tops).astype(np.float64))

    def score(self, n_chunks: int) -> TextScore:
        losses = np.concatenate(self._losses)
        perplexity, error = perplexity_of(losses)
        return TextScore(
            n_chunks=n_chunks, n_tokens=len(losses), perplexity=perplexity, error=error, divergence=self._divergence()
        )

    def _divergence(self) -> Divergence | None:
        if not self._divergences:
            return None
        values = np.concatenate(self._divergences)
        return Divergence(
            mean=float(values.mean()),
            error=float(values.std(ddof=1) / math.sqrt(len(values))) if len(values) > 1 else 0.0,
            median=float(np.median(values)),
            p99=float(np.quantile(values, 0.99)),
            maximum=float(values.max()),
            same_top=float(np.concatenate(self._same_tops).mean()),
            base_perplexity=perplexity_of(np.concatenate(self._base_losses))[0],
        )


def _check_base(base: BaseHeader, own: BaseHeader) -> None:
    """Raise BadRequest if a base can't be compared with what is scored now."""
    if base.text_sha256 != own.text_sha256:
        raise BadRequest(mark("Another text"), mark("The base was made from another text. Choose the same text file."))
    if base.n_vocab != own.n_vocab or base.n_ctx != own.n_ctx or base.n_chunks != own.n_chunks:
        raise BadRequest(
            mark("Base doesn't fit"),
            mark(
                "The base has {0} chunks of {1} tokens and a vocabulary of {2}; here it is {3} chunks of {4} and {5}. "
                "Choose a base of the same model, and the same chunks."
            ),
            base.n_chunks, base.n_ctx, base.n_vocab, own.n_chunks, own.n_ctx, own.n_vocab,
        )  # fmt: skip
    if base.tokens_sha256 != own.tokens_sha256:
        raise BadRequest(
            mark("Another vocabulary"), mark("The base is of a model with another vocabulary: {0}."), base.model
        )


class _ScoringContext(LoadedModel):
    """A second context of a session's model. `close` frees only the context."""

    def close(self) -> None:
        C.llama_batch_free(self._batch)
        C.llama_free(self.ctx)


@contextlib.contextmanager
def _scoring_context(session: Session, n_ctx: int) -> Iterator[LoadedModel]:
    model, options = session.model, session.report.options
    settings = params.context_params(
        msgspec.structs.replace(options, n_ctx=n_ctx, speculative="off"), session.report.n_ctx_train
    )
    settings.n_outputs_max, settings.n_rs_seq = _ROWS, 0
    ctx = C.llama_init_from_model(model.handle, settings)
    if not ctx:
        raise BadRequest(
            mark("Not enough memory"), mark("There is too little memory to score texts. Choose a smaller context.")
        )
    context = _ScoringContext(model.handle, ctx)
    model.abort.attach(ctx)
    try:
        yield context
    finally:
        context.close()


def _read_text(path: Path) -> bytes:
    try:
        content = read_bounded(path, _LONGEST_TEXT)
        content.decode("utf-8")
    except OSError as error:
        raise BadRequest(
            mark("Text not readable"), mark("{0} can't be read: {1}."), path.name, error.strerror or str(error)
        ) from error
    except UnicodeDecodeError as error:
        raise BadRequest(mark("Text not readable"), mark("{0} isn't a UTF-8 text."), path.name) from error
    return content


def _tokens_of(model: LoadedModel, text: bytes) -> list[int]:
    """Return the tokens of a text, as llama-perplexity has them."""
    tokens = model.tokenize(text.decode("utf-8"))
    return [model.first_token, *tokens] if model.first_token >= 0 else tokens


def _with_bos(model: LoadedModel, chunk: list[int]) -> list[int]:
    """Return a chunk that begins as the model expects a text to begin, with its first token replaced if necessary."""
    return [model.first_token, *chunk[1:]] if model.first_token >= 0 else chunk


# Logits, a row for each token.
Rows = np.ndarray[tuple[int, int], np.dtype[np.float32]]
Values = np.ndarray[tuple[int, ...], np.dtype[np.float64]]


def likeliest(logits: Rows, n_kept: int) -> Ids:
    """Return the ids of the likeliest tokens of each row, the likeliest first."""
    if not n_kept:
        return np.empty((len(logits), 0), np.uint32)
    ids = np.argpartition(-logits, n_kept - 1, axis=1)[:, :n_kept]
    order = np.argsort(-np.take_along_axis(logits, ids, axis=1), axis=1, kind="stable")
    return np.take_along_axis(ids, order, axis=1).astype(np.uint32)


def distributions(logits: Rows, ids: Ids, following: Sequence[int]) -> BaseBlock:
    """Return the log probabilities of `ids`, of all other tokens together, and of the token that follows each row."""
    peaks = logits.max(axis=1, keepdims=True)
    shares = np.exp(logits - peaks)
    log_sums = np.log(shares.sum(axis=1, keepdims=True, dtype=np.float64)) + peaks
    logs = np.take_along_axis(logits, ids.astype(np.int64), axis=1) - log_sums
    target = np.take_along_axis(logits, np.array(following, np.int64)[:, None], axis=1) - log_sums
    np.put_along_axis(shares, ids.astype(np.int64), 0, axis=1)
    with np.errstate(divide="ignore"):  # no other tokens: a probability of 0
        rest = np.log(shares.sum(axis=1, dtype=np.float64)) + (peaks - log_sums)[:, 0]
    return BaseBlock(ids, logs.astype(np.float32), rest.astype(np.float32), target[:, 0].astype(np.float32))


def divergences(base: BaseBlock, block: BaseBlock) -> Values:
    """Return the Kullback-Leibler divergence of each row from the base, in nats."""
    p, q = base.logs.astype(np.float64), block.logs.astype(np.float64)
    rest_p, rest_q = base.rest.astype(np.float64), block.rest.astype(np.float64)
    has_rest = np.isfinite(rest_p) & np.isfinite(rest_q)
    of_rest = np.where(has_rest, np.exp(rest_p) * np.where(has_rest, rest_p - rest_q, 0.0), 0.0)
    found: Values = (np.exp(p) * (p - q)).sum(axis=1) + of_rest
    return found


def perplexity_of(losses: Values) -> tuple[float, float]:
    """Return the perplexity and its standard error."""
    perplexity = math.exp(losses.mean())
    error = losses.std() / math.sqrt(len(losses) - 1) if len(losses) > 1 else 0.0
    return perplexity, float(error * perplexity)


def joined(blocks: Sequence[BaseBlock]) -> BaseBlock:
    """Return the rows of several blocks as one block."""
    ids, logs, rest, target = (
        np.concatenate([getattr(block, name) for block in blocks]) for name in ("ids", "logs", "rest", "target")
    )
    return BaseBlock(ids, logs, rest, target)
