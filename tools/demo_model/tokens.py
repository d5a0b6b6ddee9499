"""The demo model's tokenizer: byte-level BPE in Qwen's manner, trained on the demo's own texts."""

import random
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, pre_tokenizers, trainers

from tools.demo_model import dimensions, words
from tools.demo_model.chats import Chat, ChatMaker
from tools.demo_model.drawing import random_shown
from tools.demo_model.topics import Knowledge, read_knowledge

IMAGE_PAD = "<|image_pad|>"
_CONTROL = (
    "<|endoftext|>", "<|im_start|>", "<|im_end|>", "<|object_ref_start|>", "<|object_ref_end|>", "<|box_start|>",
    "<|box_end|>", "<|vision_start|>", "<|vision_end|>", "<|vision_pad|>", IMAGE_PAD, "<|video_pad|>",
)  # fmt: skip
_IN_TEXT = ("<tool_call>", "</tool_call>", "<tool_response>", "</tool_response>", "<think>", "</think>")
"""Qwen's markers that the engine must see in the model's text, so no control tokens."""
_SPLIT = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+"
    r"|\s+(?!\S)|\s+"
)
"""The pattern that llama.cpp calls `qwen35`. Nothing is normalised before it, because llama.cpp does not either."""

NORMAL, CONTROL, USER_DEFINED, UNUSED = 1, 3, 4, 5
"""GGUF's numbers of token types."""
_PADDING = re.compile(r"\[PAD\d+]")
"""What fills a vocabulary up to its size."""


class Tokens:
    """Raises OSError or tokenizers' own errors for a file that is none."""

    def __init__(self, path: Path) -> None:
        self._tokenizer = Tokenizer.from_file(str(path))
        self.pad, self.image = self.id("<|endoftext|>"), self.id(IMAGE_PAD)

    def id(self, token: str) -> int:
        """Raises KeyError for a text that is no token."""
        number = self._tokenizer.token_to_id(token)
        if number is None:
            raise KeyError(token)
        return int(number)

    def encode(self, text: str) -> list[int]:
        return list(self._tokenizer.encode(text, add_special_tokens=False).ids)

    def all(self) -> list[tuple[str, int]]:
        """Every token in order, as GGUF writes it, with its type."""
        by_id = sorted(self._tokenizer.get_vocab().items(), key=lambda item: item[1])
        types = dict.fromkeys(_CONTROL, CONTROL) | dict.fromkeys(_IN_TEXT, USER_DEFINED)
        types |= {token: UNUSED for token, _ in by_id if _PADDING.fullmatch(token)}
        return [(token, types.get(token, NORMAL)) for token, _ in by_id]

    def merges(self) -> list[str]:
        """The pairs in order, a space between the two."""
        return [" ".join(pair) for pair in msgspec.json.decode(self._tokenizer.to_str())["model"]["merges"]]


def train_tokenizer(path: Path, seed: int = 1) -> None:
    """Writes the tokenizer to `path`."""
    tokenizer = _byte_level(models.BPE())
    trainer = trainers.BpeTrainer(
        vocab_size=dimensions.VOCABULARY - len(_CONTROL) - len(_IN_TEXT),
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        min_frequency=2,
        show_progress=False,
    )
    tokenizer.train_from_iterator(_texts(read_knowledge(), random.Random(seed)), trainer)
    _save(tokenizer, path)


def write_tokenizer(tokens: Sequence[str], merges: Sequence[tuple[str, str]], path: Path) -> None:
    """Writes a tokenizer that was trained before to `path`. Raises ValueError if it has another size."""
    _save(_byte_level(models.BPE({token: number for number, token in enumerate(tokens)}, list(merges))), path)


def _byte_level(model: models.BPE) -> Tokenizer:
    tokenizer = Tokenizer(model)
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(_SPLIT), "isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    tokenizer.decoder = decoders.ByteLevel()
    return tokenizer


def _save(tokenizer: Tokenizer, path: Path) -> None:
    """With Qwen's markers, which keep their numbers if they have any. Whole or not at all."""
    tokenizer.add_special_tokens([AddedToken(each, special=True, normalized=False) for each in _CONTROL])
    tokenizer.add_tokens([AddedToken(each, special=False, normalized=False) for each in _IN_TEXT])
    if tokenizer.get_vocab_size() != dimensions.VOCABULARY:
        raise ValueError(f"The tokenizer has {tokenizer.get_vocab_size()} tokens, not {dimensions.VOCABULARY}.")
    part = path.with_suffix(".part")
    tokenizer.save(str(part))
    part.replace(path)


def _texts(knowledge: Knowledge, rng: random.Random) -> Iterator[str]:
    """What the model will write, often, then chats as they come, then English for words it has not met."""
    for topic in knowledge.topics.values():
        yield from [topic.thought, topic.answer] * 12
        yield from topic.questions * 3
    maker = ChatMaker(knowledge, rng)
    for _ in range(6000):
        yield from _words_of(maker.chat())
        yield from _words_of(maker.picture_chat(random_shown(rng)))
    yield from ["system\n", "user\n", "assistant\n", "\n\n", "\n"] * 500
    yield from (" ".join(rng.choice(words.COMMON) for _ in range(30)) for _ in range(300))


def _words_of(chat: Chat) -> Iterator[str]:
    yield chat.system
    for message in chat.messages:
        yield message.thought
        yield message.text
        if message.call:
            parameters = "".join(f"<parameter={name}>\n</parameter>\n" for name in message.call.arguments)
            yield f"<function={message.call.name}>\n{parameters}</function>\n"
