"""Looks up what a flag of llama.cpp, Ollama or vLLM is here."""

import functools
from collections.abc import Iterator, Mapping
from types import MappingProxyType

import msgspec

from qwendesk.core.flag_table import ALIASES, LLAMA_CPP, OLLAMA, VLLM, Flag, Program
from qwendesk.core.generation_options import GenerationOptions
from qwendesk.core.options import LoadOptions
from qwendesk.core.settings import Entry, table
from qwendesk.core.translation import tr

# Options whose flag takes something else than the option's value; flag_table.py or command_reader.py has them.
_SPECIAL_FLAGS = frozenset({"vision", "preserve_thinking", "reasoning_effort", "enable_thinking", "thinking_close"})
_PROGRAMS: tuple[Program, ...] = ("llama.cpp", "ollama", "vllm")


class FlagSearch(msgspec.Struct, frozen=True):
    """What a text that was typed into a search field means as a flag."""

    flags: tuple[Flag, ...]
    is_only_a_flag: bool
    """The text can't be an ordinary word, so that nothing else should be found."""

    @property
    def keys(self) -> frozenset[str]:
        """The options to show."""
        return frozenset(key for flag in self.flags for key in (flag.key, *flag.see) if key)


def find_flag(name: str, program: Program) -> Flag | None:
    """Return the flag of `program` that is spelled `name`; None if it has none."""
    return _flags()[program].get(name)


def search_flag(query: str) -> FlagSearch | None:
    """Return what the query means if its first word is the spelling of a flag, else None.

    What follows it is ignored, as in "-ctk q8_0" or "exps=CPU".
    """
    return _search(query.split("=", maxsplit=1)[0].split(" ", maxsplit=1)[0])


def spellings(key: str) -> tuple[str, ...]:
    """Return all spellings of the flags that set the option `key`."""
    found = (flag.names for program in _PROGRAMS for flag in _flags()[program].values() if flag.key == key)
    return tuple(dict.fromkeys(name for names in found for name in names))


def flag_note(query: str) -> str:
    """Return sentences about the flag in `query` that its options don't say; "" if there are none."""
    found = search_flag(query)
    if found is None or not found.is_only_a_flag:
        return ""
    answer_options = table(GenerationOptions)
    sentences = [tr(flag.note) for flag in found.flags if flag.note]
    sentences += [
        tr("{0} is on the tab Sampling.", tr(answer_options[key].setting.label))
        for key in sorted(found.keys)
        if key in answer_options
    ]
    return " ".join(dict.fromkeys(sentences))


@functools.lru_cache(maxsize=256)
def _search(name: str) -> FlagSearch | None:
    found = [flag for program in _PROGRAMS if (flag := find_flag(name, program)) is not None]
    if not found:
        return None
    return FlagSearch(tuple(found), not name.isalpha() or name == "exps")


@functools.cache
def _flags() -> Mapping[Program, Mapping[str, Flag]]:
    """Return the flags of each program by name. Those in flag_table.py come before those of the settings table."""
    rows = [*LLAMA_CPP, *OLLAMA, *VLLM]
    for options in (LoadOptions, GenerationOptions):
        for entry in table(options).values():
            rows += _flags_of(entry)
    found: dict[Program, dict[str, Flag]] = {program: {} for program in _PROGRAMS}
    for flag in rows:
        for name in flag.names:
            found[flag.program].setdefault(name, flag)
    return MappingProxyType(found)


def _flags_of(entry: Entry) -> Iterator[Flag]:
    setting, key = entry.setting, entry.key
    if setting.flag and key not in _SPECIAL_FLAGS:
        names = (setting.flag, *ALIASES.get(setting.flag, "").split())
        if isinstance(entry.default, bool):
            yield Flag(program="llama.cpp", names=names, key=key, value=str(not entry.default).lower(), n_values=0)
        else:
            yield Flag(program="llama.cpp", names=names, key=key)
    elif setting.flag and key == "thinking_close":
        yield Flag(program="llama.cpp", names=(setting.flag,), key=key)
    if setting.ollama:
        yield Flag(program="ollama", names=(setting.ollama,), key=key)
    if setting.vllm:
        yield Flag(program="vllm", names=(setting.vllm,), key=key)
