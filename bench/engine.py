"""How much the worker, the pipe and the client cost, and what the prompt cache saves.

    python -m bench.engine [--size small] [--rounds 7] [--threads N]
    LLAMA_SERVER=/path/to/llama-server python -m bench.engine     # the same chat through llama-server as well

Everything runs in one go on one generated file; ours and the peer take turns, so that a noisy machine hits
both. Each line gives medians, the ratio's median, and the target of the issue that asked for it.
"""

import argparse
import asyncio
import hashlib
import os
import statistics
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec
import psutil
from PIL import Image, ImageDraw

from bench.bare import BareLoop
from bench.llama_server import chat_through_llama_server
from qwendesk.core import paths
from qwendesk.core.failures import LoadFailure
from qwendesk.core.generation_options import GenerationOptions
from qwendesk.core.messages import ClipFrame, ImagePart, Message, TextPart, text_message
from qwendesk.core.options import DecidedOptions
from qwendesk.core.stats import AnswerStats
from qwendesk.engine.client import WorkerClient
from qwendesk.engine.process import SHORT_SPIN, SPIN_VARIABLE
from qwendesk.engine.protocol import Delta, Finished, Generate, LoadReport
from tools import bench_model

_DECODED = 48
_DECODE_TURNS = 4
"""Decode takes this many short turns per round: the finer both alternate, the less a machine's mood decides."""
_LONG_CHAT_TOKENS = 2_000
_WORDS = [
    "the",
    "model",
    "reads",
    "a",
    "long",
    "prompt",
    "and",
    "keeps",
    "what",
    "it",
    "has",
    "read",
    "so",
    "that",
    "every",
    "later",
    "turn",
    "starts",
    "at",
    "once",
    "while",
    "memory",
    "bandwidth",
    "decides",
    "how",
    "fast",
    "it",
    "writes",
    "and",
    "a",
    "checkpoint",
    "of",
    "the",
    "recurrent",
    "state",
    "lets",
    "it",
    "go",
    "back",
    "to",
    "any",
    "turn",
]


class Line(msgspec.Struct, frozen=True):
    """One measured line: what, ours, the peer's, their ratio, and the target."""

    what: str
    ours: str
    peer: str
    ratio: float | None
    target: str
    met: bool

    def __str__(self) -> str:
        ratio = f"{self.ratio:.3f}" if self.ratio is not None else "-"
        return (
            f"| {self.what} | {self.ours} | {self.peer} | {ratio} | {self.target} | {'met' if self.met else 'MISSED'} |"
        )


class Answered(msgspec.Struct, frozen=True):
    text: str
    stats: AnswerStats


class Desk:
    """The app's side: a client with a loaded model."""

    def __init__(self) -> None:
        self._client = WorkerClient()
        self.forbid_end: tuple[str, ...] = ()

    async def load(self, options: DecidedOptions) -> LoadReport:
        report = await self._client.load(options)
        if isinstance(report, LoadFailure):
            raise SystemExit(f"{report.title}: {report.sentence}")
        self.forbid_end = tuple(f"{token}=-inf" for token in report.end_tokens)
        return report

    async def ask(self, messages: Sequence[Message], **options: object) -> Answered:
        settings = {"temperature": 0.0, "presence_penalty": 0.0, "enable_thinking": False} | options
        request = Generate(messages=tuple(messages), options=msgspec.convert(settings, GenerationOptions))
        text = ""
        async for event in self._client.generate(request):
            if isinstance(event, Delta):
                text += event.text
            elif isinstance(event, Finished):
                return Answered(text, event.stats)
        raise SystemExit(f"the engine did not answer: {event}")

    async def close(self) -> None:
        await self._client.close()


def long_text(n_tokens: int, bare: BareLoop) -> str:
    """About `n_tokens` tokens of text that is always the same."""
    words = [_WORDS[(i * i + 7 * i) % len(_WORDS)] for i in range(n_tokens)]
    per_word = len(bare.tokens(" ".join(words))) / len(words)
    return " ".join(words[: int(n_tokens / per_word)])


async def decode_line(desk: Desk, bare: BareLoop, rounds: int) -> Line:
    """Decode through worker, pipe and client against the bare loop."""
    question = [text_message("user", "Write.")]
    ours, peers = [], []
    for _ in range(rounds * _DECODE_TURNS):
        answer = await desk.ask(question, max_tokens=_DECODED, logit_bias=desk.forbid_end)
        ours.append(answer.stats.decode_tok_s)
        bare.read(bare.tokens("Write."))
        peers.append(bare.decode(_DECODED, 0))
    ratio = statistics.median(a / b for a, b in zip(ours, peers, strict=True))
    return Line(
        "decode, tok/s: worker vs bare C loop",
        f"{statistics.median(ours):.1f}",
        f"{statistics.median(peers):.1f}",
        ratio,
        "at least 0.97",
        ratio >= 0.97,
    )


async def second_turn_line(desk: Desk, bare: BareLoop, rounds: int) -> Line:
    """Time to the first token of turn two of a long chat against reading only its new tokens."""
    text = long_text(_LONG_CHAT_TOKENS, bare)
    prefix = bare.tokens(text)
    ours, peers, first, reread = [], [], [], 0
    for number in range(rounds):
        chat = [text_message("user", f"{number} {text}")]
        one = await desk.ask(chat, max_tokens=64, logit_bias=desk.forbid_end)
        chat += [text_message("assistant", one.text), text_message("user", "And what follows from that?")]
        two = await desk.ask(chat, max_tokens=4)
        reread = two.stats.reread_tokens
        first.append(one.stats.ttft_s)
        ours.append(two.stats.ttft_s)
        bare.read(prefix)
        peers.append(bare.read(prefix[:reread], position=len(prefix)))
    ratio = statistics.median(a / b for a, b in zip(ours, peers, strict=True))
    return Line(
        f"turn 2 of a {len(prefix):,}-token chat, s to first token ({reread} new tokens; "
        f"turn 1: {statistics.median(first):.2f} s)",
        f"{statistics.median(ours):.3f}",
        f"{statistics.median(peers):.3f}",
        ratio,
        "at most 1.3",
        ratio <= 1.3,
    )


async def attached_line(
    desk: Desk, rounds: int, what: str, attached: Callable[[Path, int], tuple[ImagePart, ...]]
) -> Line:
    """Another question about the same picture or clip: it must read nothing but its own text."""
    first, again, own, reread = [], [], 0, 0
    with tempfile.TemporaryDirectory() as folder:
        for number in range(rounds):
            parts = attached(Path(folder), number)
            one = await desk.ask([Message("user", (*parts, TextPart("What is in this picture?")))], max_tokens=8)
            two = await desk.ask([Message("user", (*parts, TextPart("What colour is the shape?")))], max_tokens=8)
            first.append(one.stats.ttft_s)
            again.append(two.stats.ttft_s)
            reread = two.stats.reread_tokens
            own = two.stats.prompt_tokens - two.stats.image_tokens
    ratio = statistics.median(a / b for a, b in zip(again, first, strict=True))
    return Line(
        f"another question about {what} (demo), s to first token: again vs first",
        f"{statistics.median(again):.3f}",
        f"{statistics.median(first):.3f}",
        ratio,
        f"at most 0.03; re-reads its own text only: {reread} of {own} text tokens",
        reread <= own and ratio <= 0.03,
    )


def _picture(folder: Path, number: int, size: tuple[int, int] = (1024, 768)) -> tuple[ImagePart, ...]:
    path, (width, height) = folder / f"{number}-{size[0]}.png", size
    image = Image.new("RGB", size, "white")
    left = width // 5 + number % 100
    ImageDraw.Draw(image).ellipse((left, height // 8, left + width // 2, height * 3 // 4), fill="red")
    image.save(path)
    return (ImagePart(str(path), hashlib.sha256(path.read_bytes()).hexdigest()),)


def _clip(folder: Path, number: int) -> tuple[ImagePart, ...]:
    """Eight frames, one a second, all different."""
    frames = [_picture(folder, number * 8 + second, (512, 384))[0] for second in range(8)]
    return tuple(
        msgspec.structs.replace(frame, frame=ClipFrame("clip.mp4", f"{number}", float(second), 8.0))
        for second, frame in enumerate(frames)
    )


async def measure(model: Path, rounds: int, n_threads: int) -> list[Line]:
    common = {"n_ctx": 4096, "n_gpu_layers": 0, "n_cpu_moe": 0, "load_mode": "mmap", "n_threads": n_threads}
    bare = BareLoop(model, n_ctx=4096, n_threads=n_threads)
    desk = Desk()
    try:
        await desk.load(msgspec.convert({"model": str(model), **common}, DecidedOptions))
        lines = [await decode_line(desk, bare, rounds), await second_turn_line(desk, bare, rounds)]
        if server := os.environ.get("LLAMA_SERVER"):
            lines += await _against_llama_server(Path(server), desk, bare, model, rounds, n_threads)
        demo = {"model": str(paths.demo_model()), "mmproj": str(paths.demo_mmproj()), **common}
        await desk.load(msgspec.convert(demo, DecidedOptions))
        lines.append(await attached_line(desk, rounds, "one 1024x768 picture", _picture))
        lines.append(await attached_line(desk, rounds, "a clip of eight 512x384 frames", _clip))
    finally:
        await desk.close()
        bare.close()
    return lines


async def _against_llama_server(
    server: Path, desk: Desk, bare: BareLoop, model: Path, rounds: int, n_threads: int
) -> list[Line]:
    """The same two-turn chat through llama-server, started on the same file."""
    text = long_text(_LONG_CHAT_TOKENS, bare)
    ours, peers = [], []
    with chat_through_llama_server(server, model, n_ctx=4096, n_threads=n_threads) as ask:
        for number in range(rounds):
            question = f"{number} {text}"
            one = await desk.ask([text_message("user", question)], max_tokens=64, logit_bias=desk.forbid_end)
            later = [text_message("assistant", one.text), text_message("user", "And what follows from that?")]
            two = await desk.ask([text_message("user", question), *later], max_tokens=32, logit_bias=desk.forbid_end)
            ours.append((two.stats.decode_tok_s, two.stats.ttft_s))
            ask([("user", question)], 64)
            turn_two = [("user", question), ("assistant", one.text), ("user", "And what follows from that?")]
            peers.append(ask(turn_two, 32))
    decode = statistics.median(a[0] / b[0] for a, b in zip(ours, peers, strict=True))
    prompt = statistics.median(a[1] / b[1] for a, b in zip(ours, peers, strict=True))
    return [
        Line(
            "decode, tok/s: worker vs llama-server",
            f"{statistics.median(a[0] for a in ours):.1f}",
            f"{statistics.median(b[0] for b in peers):.1f}",
            decode,
            "no slower (0.97)",
            decode >= 0.97,
        ),
        Line(
            "turn 2, s to first token: worker vs llama-server's prompt time",
            f"{statistics.median(a[1] for a in ours):.3f}",
            f"{statistics.median(b[1] for b in peers):.3f}",
            prompt,
            "no slower (1.1)",
            prompt <= 1.1,
        ),
    ]


def generated_model(size: str) -> Path:
    """Return the generated model of `size` (a key of bench_model.SIZES), made now if it is not there."""
    model = Path(".work") / f"bench-{size}-q4_k_m.gguf"
    if not model.exists():
        print(f"generating {model} ...", flush=True)
        model.parent.mkdir(exist_ok=True)
        bench_model.make(model, size)
    return model


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--size", default="small", choices=sorted(bench_model.SIZES), help="generated model (default small)"
    )
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--threads", type=int, default=psutil.cpu_count(logical=False) or 1)
    chosen = parser.parse_args()
    # Before the engine's library is loaded: the bare loop waits like the worker.
    os.environ.setdefault(SPIN_VARIABLE, SHORT_SPIN)
    model = generated_model(chosen.size)
    lines = asyncio.run(measure(model, chosen.rounds, chosen.threads))
    print(f"\n{model.name}, {chosen.threads} threads, {chosen.rounds} rounds, medians\n")
    print("| what | ours | peer | ratio | target | |\n|---|---|---|---|---|---|")
    for line in lines:
        print(line)


if __name__ == "__main__":
    main()
