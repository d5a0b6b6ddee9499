"""Facts from the name of a model file: shard number, quant, size, and the kind of file.

Before a download only the name is known. For a file on disk the header decides; see hub/gguf.py.
"""

import re
from pathlib import PurePosixPath, PureWindowsPath
from typing import Self

import msgspec

_SHARD = re.compile(r"(?P<base>.+)-(?P<number>\d{5})-of-(?P<count>\d{5})(?P<suffix>\.gguf)", re.IGNORECASE | re.DOTALL)
# No real set has this many shards; a larger number in a name would only cost time and memory.
_MAX_SHARDS = 999
_QUANT = re.compile(
    r"(?<![A-Za-z0-9])(?:UD-|GSQ-RCO-)?"
    r"(?:I?Q[1-8]_(?:K(?:_[A-Z]{1,3})?|[A-Z]{1,3}(?:_XL)?|[01](?:_\d_\d)?)(?:_R\d{1,2})?|P?TQ[12]_0|PQ2_0"
    r"|MXFP4(?:_MOE)?|NVFP4|BF16|F16|F32)(?:-MTP(?![A-Za-z0-9]))?"
    r"(?![A-Za-z0-9])",
    re.IGNORECASE,
)
_SIZE = re.compile(r"(?<![A-Za-z0-9.])(?P<billions>\d+(?:\.\d+)?)B(?:-A\d+(?:\.\d+)?B)?(?![A-Za-z0-9])", re.IGNORECASE)
# Only at the beginning: "Qwen3.6-27B-MTP-Q8_0" is a whole model with the MTP layer inside.
_DRAFT_PREFIX = "mtp-"
_DRAFT_WORD = re.compile(r"(?<![a-z0-9])(?:dflash\d*|eagle3?|draft(?:er)?)(?![a-z0-9])", re.IGNORECASE)
_IMATRIX_WORD = re.compile(r"(?<![a-z0-9])imatrix(?:\.gguf$|[_-]|$)", re.IGNORECASE)


class Shard(msgspec.Struct, frozen=True):
    """One file of a split model, named as by llama.cpp: `base-00001-of-00003.gguf`."""

    base: str
    """The name or path before the number."""
    number: int
    """From 1. Only the first shard can be loaded, and it holds the metadata."""
    count: int
    """From 2 to 999."""
    suffix: str
    """".gguf" in its original case."""

    @classmethod
    def parse(cls, path: str) -> Self | None:
        """Return the shard that a file name or path names, or None if it does not name one."""
        found = _SHARD.fullmatch(path)
        if found is None:
            return None
        number, count = int(found["number"]), int(found["count"])
        is_possible = 1 <= number <= count and 1 < count <= _MAX_SHARDS
        return cls(found["base"], number, count, found["suffix"]) if is_possible else None

    @property
    def is_first(self) -> bool:
        return self.number == 1

    @property
    def siblings(self) -> tuple[str, ...]:
        """The names of all shards of the set including this one, in order; paths if `base` is a path."""
        return tuple(self.sibling(number) for number in range(1, self.count + 1))

    def sibling(self, number: int) -> str:
        """Return the name (or path) of the shard with that number, from 1."""
        return f"{self.base}-{number:05}-of-{self.count:05}{self.suffix}"


def is_first_shard(path: str) -> bool:
    """Return True for shard 1 of a split set. Several quants may share it, so its hash does not identify a file."""
    shard = Shard.parse(path)
    return shard is not None and shard.is_first


def model_name(path: str) -> str:
    """Return the file's name without its folder, its shard number and ".gguf"."""
    shard = Shard.parse(path)
    name = _name(path if shard is None else shard.base)
    return name if shard is not None else re.sub(r"\.gguf$", "", name, flags=re.IGNORECASE)


def quants_in(text: str) -> tuple[str, ...]:
    """Return every quant that a name or path mentions, in order and in capital letters ("UD-Q4_K_XL", "BF16").

    A mark behind the quant belongs to it: "X-IQ3_S-mtp.gguf", which has the MTP layer inside, is another file than
    "X-IQ3_S.gguf".
    """
    return tuple(found.group().upper() for found in _QUANT.finditer(text))


def quant_in_name(path: str) -> str:
    """Return the quant that a file's name ends with, or "" if it mentions none."""
    return next(reversed(quants_in(model_name(path))), "")


def sizes_in(text: str) -> frozenset[str]:
    """Return the model sizes that a text mentions, as "35B-A3B" or "0.8B"."""
    return frozenset(found.group().upper() for found in _SIZE.finditer(text))


def billions_in(text: str) -> float | None:
    """Return the first number of parameters that a text mentions, in billions: 35.0 for "Qwen3.5-35B-A3B"."""
    found = _SIZE.search(text)
    return float(found["billions"]) if found else None


def is_mmproj_name(path: str) -> bool:
    """Return True if the name is that of a vision projector (mmproj) file."""
    return "mmproj" in _name(path).lower()


def is_draft_name(path: str) -> bool:
    """Return True if the name is that of a file for speculative decoding only."""
    return bool(draft_mark(path))


def draft_mark(path: str) -> str:
    """Return the part of the name that marks a draft model, such as "mtp-" or "DFlash"; "" if there is none."""
    name = _name(path)
    if name.lower().startswith(_DRAFT_PREFIX):
        return name[: len(_DRAFT_PREFIX)]
    found = _DRAFT_WORD.search(name)
    return found.group() if found is not None else ""


def is_imatrix_name(path: str) -> bool:
    """Return True if the name is that of an importance matrix, from which quants are made: "X-imatrix.gguf"."""
    name = _name(path)
    return not quants_in(name) and _IMATRIX_WORD.search(name) is not None


def is_helper_name(path: str) -> bool:
    """Return True if the file only helps a model: a vision projector, a draft model or an importance matrix."""
    return is_mmproj_name(path) or is_draft_name(path) or is_imatrix_name(path)


def _name(path: str) -> str:
    """Return the last part of a path in a repository or on this system."""
    return PureWindowsPath(path).name if "\\" in path else PurePosixPath(path).name
