"""Measures the detector of loops in generated text: `python -m bench.loops [--seeds 1]`.

Ordinary texts must give no alarm: the prose and the code of this repository and of Python's standard library, each as
reasoning, as an answer and as an answer in a code fence, and made texts that repeat legally. Made loops must be found
within four periods, counted from the first token that can be reported. Tokens are those of the demo model, of about two
characters, and whole words, which are nearer to those of large models.
"""

import argparse
import ctypes
import pydoc_data.topics
import random
import re
import sys
import sysconfig
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import llama_cpp.llama_cpp as C
import msgspec

from qwendesk.engine.worker.log import EngineLog
from qwendesk.engine.worker.repetition import FIRST_TOKEN, MAX_PERIOD, LoopDetector, Part, Repetition

Token = tuple[int, str]
Tokenizer = Callable[[str], list[Token]]

PARTS: tuple[Part, ...] = ("reasoning", "answer")
PERIODS = range(4, MAX_PERIOD + 1)
ORDINARY_PERIOD = 16
"""Shorter periods need more than four copies by design, most of all in answers: "ha, ha" is no loop yet."""
_ROOT = Path(__file__).parent.parent
_DEMO = _ROOT / "resources" / "demo" / "qwendesk-demo-Q8_0.gguf"
_LEAST, _MOST = 4_000, 10_000
"""Characters of an ordinary text: at least 600 tokens, and not so many that the measurement takes minutes."""
_GOAL_US = 10.0
_FILLERS = ("Wait.", "Hmm, let me think.", "But no.", "So, once more.", "Actually,", "Wait,", "But")


class Loop(msgspec.Struct, frozen=True):
    """A made text that is a loop from token number `start` on."""

    tokens: list[Token]
    start: int
    period: float
    """Tokens of one round; a mean where rounds differ."""

    def rounds_until(self, part: Part) -> float | None:
        """Return after how many periods the loop is found. None if never, or before it began."""
        found = first_alarm(self.tokens, part)
        if found is None or found[0] <= self.start:
            return None
        return (found[0] - max(self.start, FIRST_TOKEN)) / self.period


def first_alarm(tokens: Sequence[Token], part: Part) -> tuple[int, Repetition] | None:
    """Return the number of tokens after which a loop is found, and the loop."""
    detector = LoopDetector(part)
    for number, (token, text) in enumerate(tokens, 1):
        if (found := detector.feed(token, text)) is not None:
            return number, found
    return None


def word_tokens(text: str) -> list[Token]:
    """Split text into words with the space before them, single signs and white space. Ids are hashes."""
    pieces = re.findall(r" ?\w{1,12}|[^\w\s]{1,4}|\s", text)
    return [(hash(piece) % 1_000_000, piece) for piece in pieces]


def demo_tokenizer() -> Tokenizer:
    """Return the tokenizer of the demo model, as llama.cpp has it."""
    C.llama_backend_init()
    params = C.llama_model_default_params()
    params.vocab_only = True
    model = C.llama_model_load_from_file(str(_DEMO).encode(), params)
    if not model:
        raise SystemExit(f"{_DEMO} could not be loaded")
    vocab = C.llama_model_get_vocab(model)
    buffer = ctypes.create_string_buffer(256)
    pieces = []
    for token in range(C.llama_vocab_n_tokens(vocab)):
        length = C.llama_token_to_piece(vocab, token, buffer, len(buffer), 0, True)
        pieces.append(buffer.raw[:length].decode(errors="replace"))

    def tokenize(text: str) -> list[Token]:
        raw = text.encode()
        array = (C.llama_token * (len(raw) + 8))()
        ids = array[: C.llama_tokenize(vocab, raw, len(raw), array, len(array), False, False)]
        return [(token, pieces[token]) for token in ids]

    return tokenize


def ordinary_texts() -> Iterator[tuple[str, str]]:
    """Yield name and text of long texts that are on every PC with this repository: prose first, then code."""
    topics = "\n\n".join(pydoc_data.topics.topics[name] for name in sorted(pydoc_data.topics.topics))
    for start in range(0, len(topics) - _LEAST, _LEAST):
        yield f"topics:{start}", topics[start : start + _LEAST]
    documents = [*_ROOT.glob("*.md"), *_ROOT.glob("docs/**/*.md"), *_ROOT.glob("bench/*.md")]
    sources = [*_ROOT.glob("qwendesk/**/*.py"), *Path(sysconfig.get_path("stdlib")).glob("*.py")]
    translations = [*_ROOT.glob("resources/i18n/*.json"), _ROOT / "resources" / "catalog.json", _ROOT / "LICENSE"]
    for path in [*sorted(documents), *translations, *sorted(sources)]:
        text = path.read_text(encoding="utf-8", errors="replace")[:_MOST]
        if len(text) >= _LEAST:
            yield path.name, text


def legal_repeats(rng: random.Random) -> Iterator[tuple[str, str]]:
    """Yield name and text of made texts, of at least 2,500 characters, that repeat and are no loops."""
    words = _words()

    def prose(n_words: int) -> str:
        return " ".join(rng.choices(words, k=n_words)).capitalize() + "."

    def rows(make: Callable[[int], str], n_rows: int = 60) -> str:
        return "\n".join(make(number) for number in range(n_rows))

    letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
    cases = [
        f"Case {n}: if x is {n}, then f of x is {n * n % 7}, so it is not a solution and we go on." for n in range(60)
    ]
    refrain = "\n".join(prose(7) for _ in range(4))
    draft = "\n\n".join(prose(12) for _ in range(12))
    intro = prose(300) + "\n\n"
    yield "zeros", intro + rows(lambda n: ", ".join("0" * 32))
    yield "booleans", intro + rows(lambda n: ", ".join("true" if n == m else "false" for m in range(16)), 16)
    yield "separators", rows(lambda n: f"{prose(12)}\n\n|---|---|---|---|---|\n{'=' * 80}\n{'- ' * 40}")
    yield "table", rows(lambda n: f"| {prose(3)} | {n} | yes | no | not supported |")
    yield "empty table", intro + rows(lambda n: "|  |  |  |  |  |")
    yield "form", intro + rows(lambda n: "Question: ____________ Answer: ____________", 12)
    yield (
        "JSON rows",
        rows(lambda n: f'{{"id": {n}, "name": "{rng.choice(words)}", "type": "string", "default": null}},'),
    )
    yield (
        "HTML",
        rows(lambda n: f'<tr class="row"><td class="px-4 py-2">{rng.choice(words)}</td><td></td><td></td></tr>'),
    )
    yield "base64", rows(lambda n: "".join(rng.choices(letters, k=76)) if n % 4 else "A" * 76)
    yield "ASCII art", intro + rows(lambda n: "|" + " " * (n % 20) + "/\\" * 8 + "_" * 20 + "|")
    yield "cases", "\n".join(cases)
    yield "grid", intro + rows(lambda n: f"If x is {n // 8} and y is {n % 8}, it fails, so we try the next one.")
    yield "words", rows(lambda n: f"Check {words[n]}:\n- It has the right number of letters.\n- There is no z in it.\n")
    yield "primes", rows(lambda n: f"Check {n}.\nIt is not divisible by 2.\nIt is not divisible by 3.\nSo it is prime.")
    yield "song", "\n\n".join(f"{chr(10).join(prose(7) for _ in range(6))}\n\n{refrain}" for _ in range(12))
    yield "three drafts", f"{prose(30)}\n\n{draft}\n\n{prose(40)}\n\n{draft}\n\n{prose(30)}\n\n{draft}\n\n{prose(200)}"
    yield "tests", rows(lambda n: f"    def test_{n}(self) -> None:\n        self.assertEqual(f({n}), {n * n})\n", 50)
    yield "checklist", intro + rows(lambda n: f"- [ ] {prose(2)}\n- [ ] TODO\n- [ ] TODO\n- [ ] TODO", 20)


def period_loop(rng: random.Random, tokenize: Tokenizer, period: int, start: int, *, fence: str = "") -> Loop:
    """Make ordinary text of `start` tokens, then a block of prose of `period` tokens again and again."""
    words = _words()
    before = tokenize(" ".join(rng.choices(words, k=start)))[:start] + (tokenize(fence) if fence else [])
    block = tokenize(" " + ", ".join(" ".join(rng.choices(words, k=8)) for _ in range(period // 8 + 1)))[:period]
    n_copies = (FIRST_TOKEN + 600) // period + 6
    return Loop([*before, *block * n_copies], len(before), period)


def sentence_loop(
    rng: random.Random, tokenize: Tokenizer, n_sentences: int, start: int, *, is_changed: bool, n_rounds: int = 12
) -> Loop:
    """Make ordinary text, then rounds of the same sentences in any order.

    If `is_changed`, other words stand before some of them, and some have another word.
    """
    words = _words()
    texts = [" ".join(rng.choices(words, k=rng.randint(8, 18))).capitalize() + "." for _ in range(n_sentences)]
    before = tokenize(" ".join(rng.choices(words, k=start)) + ".\n\n")
    rounds = []
    for _ in range(n_rounds):
        rng.shuffle(texts)
        for text in texts:
            said = text
            if is_changed and rng.random() < 0.05:
                said = text.replace(rng.choice(text[:-1].split()), rng.choice(words), 1)
            rounds.append(f"{rng.choice(_FILLERS)} {said}" if is_changed and rng.random() < 0.3 else said)
    tokens = tokenize(" " + " ".join(rounds))
    return Loop([*before, *tokens], len(before), len(tokens) / n_rounds)


def _words() -> list[str]:
    """Return the words of Python's documentation, each as often as it is used there."""
    return re.findall(r"\b[a-z]{2,10}\b", pydoc_data.topics.topics["typesseq"] + pydoc_data.topics.topics["import"])


def measure(name: str, tokenize: Tokenizer, n_seeds: int) -> Iterator[tuple[str, str, str, bool]]:
    """Yield what was measured with a tokenizer, the result, the target, and whether it is met."""
    texts = [(title, tokens) for title, text in ordinary_texts() if len(tokens := tokenize(text)) >= 600]
    repeats = [each for seed in range(n_seeds) for each in legal_repeats(random.Random(seed))]
    made = [(title, tokenize(text)) for title, text in repeats]
    alarms = [f"{title} ({part})" for part in PARTS for title, tokens in [*texts, *made] if first_alarm(tokens, part)]
    fence = tokenize("```text\n")
    alarms += [f"{title} (fence)" for title, tokens in texts if first_alarm([*fence, *tokens], "answer")]
    shown = f"{len(alarms)} {', '.join(alarms[:8])}".strip()
    yield f"{name}: false alarms in {len(texts)} texts and {len(made)} legal repeats", shown, "0", not alarms
    for part in PARTS:
        yield from _measure_loops(f"{name}, {part}", tokenize, part, n_seeds)
    per_token = [_us_per_token(tokens) for _, tokens in texts]
    mean, worst = sum(per_token) / len(per_token), max(per_token + [_us_per_token(tokens) for _, tokens in made])
    yield f"{name}: µs per token, mean (worst text)", f"{mean:.1f} ({worst:.1f})", f"{_GOAL_US:.0f}", mean <= _GOAL_US


def _measure_loops(name: str, tokenize: Tokenizer, part: Part, n_seeds: int) -> Iterator[tuple[str, str, str, bool]]:
    rng = random.Random(part)
    starts = (100, 500, 900)
    loops = [period_loop(rng, tokenize, p, start) for p in PERIODS for start in starts for _ in range(n_seeds)]
    long = [loop.rounds_until(part) for loop in loops if loop.period >= ORDINARY_PERIOD]
    short_loops = [loop for loop in loops if loop.period < ORDINARY_PERIOD]
    short = [loop.rounds_until(part) for loop in short_loops]
    short_in_tokens = [msgspec.structs.replace(loop, period=1).rounds_until(part) for loop in short_loops]
    shuffled, changed = (
        [
            sentence_loop(rng, tokenize, n, start, is_changed=is_changed).rounds_until(part)
            for n in (3, 4, 5, 6, 8, 12)
            for start in starts
            for _ in range(8 * n_seeds)
        ]
        for is_changed in (False, True)
    )
    code = [period_loop(rng, tokenize, p, 600, fence="\n```\n") for p in PERIODS[::5]]
    tokens_in_code = [msgspec.structs.replace(loop, period=1).rounds_until(part) for loop in code]
    yield _share(f"{name}: periods 16 to 128, within 4 periods", long, 4, 0.95)
    yield _share(f"{name}: all periods, within 4 periods", long + short, 4, 0.95 if part == "reasoning" else 0.9)
    yield _share(f"{name}: periods 4 to 15, within 520 tokens", short_in_tokens, 520, 0.95)
    for what, rounds in (("in another order", shuffled), ("with other words", changed)):
        yield _share(f"{name}: sentences {what}, within 4 periods", rounds, 4, 0)
        yield _share(f"{name}: sentences {what}, within 8 periods", rounds, 8, 0.95)
    yield _share(f"{name}: in a code fence, within 512 tokens", tokens_in_code, 512, 0.95)


def _share(what: str, rounds: list[float | None], most: float, target: float) -> tuple[str, str, str, bool]:
    share = sum(each is not None and each <= most for each in rounds) / len(rounds)
    shown = f"{100 * share:.1f}% of {len(rounds)}"
    return what, shown, f"{100 * target:.0f}%" if target else "-", share >= target


def _us_per_token(tokens: Sequence[Token]) -> float:
    detector = LoopDetector("reasoning")
    began = time.process_time()
    for token, text in tokens:
        detector.feed(token, text)
    return 1e6 * (time.process_time() - began) / len(tokens)


def main() -> int:
    """Print the table; exit status 1 if a target is missed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=1, help="how many made texts of each kind (default 1)")
    chosen = parser.parse_args()
    log = EngineLog()
    log.install()
    tokenizers: dict[str, Tokenizer] = {"demo tokens": demo_tokenizer(), "words": word_tokens}
    print("| what | measured | target | |\n|---|---|---|---|")
    is_met = True
    for name, tokenize in tokenizers.items():
        for what, measured, target, met in measure(name, tokenize, chosen.seeds):
            print(f"| {what} | {measured} | {target} | {'met' if met else 'MISSED'} |", flush=True)
            is_met &= met
    return 0 if is_met else 1


if __name__ == "__main__":
    sys.exit(main())
