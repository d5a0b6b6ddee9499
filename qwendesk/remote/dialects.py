"""The fields that each kind of server understands beyond OpenAI's chat completions, by its documentation.

Sources: llama.cpp tools/server/README.md and server-common.cpp (b11312), docs.vllm.ai "OpenAI-Compatible Server",
docs.sglang.ai "OpenAI APIs", docs.ollama.com "OpenAI compatibility", lmstudio.ai/docs/developer/openai-compat, and for
LM Studio's and Ollama's reasoning_effort their issue trackers (lmstudio-bug-tracker#2057, ollama#14820). Strata's and
FreeToken's are what their servers read of a request (serve/frontend.py of Niko1221/Strata, api_models.py of
FlashML-org/FreeToken, October 2026).
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, Literal

import msgspec

from qwendesk.core.generation_options import GenerationOptions
from qwendesk.core.settings import table
from qwendesk.engine.protocol import UNKNOWN_PROGRAM

ServerKind = Literal[
    "llama-server", "lmstudio", "ollama", "vllm", "sglang", "qwendesk", "strata", "freetoken", "lemonade", "jan",
    "koboldcpp", "docker", "exo", "other",
]  # fmt: skip

_SETTINGS: Final = {key: entry.setting for key, entry in table(GenerationOptions).items()}
_LLAMA_SAMPLING: Final = MappingProxyType(
    {key: each.llama_server for key, each in _SETTINGS.items() if each.llama_server}
)
# Generation options that only the engine worker has.
_OF_THE_WORKER: Final = ("break_loops", "logit_bias", "context_overflow", "chat_format")
_VLLM_SAMPLING: Final = MappingProxyType({key: _SETTINGS[key].vllm for key in _LLAMA_SAMPLING if _SETTINGS[key].vllm})
_NONE: Final[Mapping[str, str]] = MappingProxyType({})
_TOP_K: Final[Mapping[str, str]] = MappingProxyType({"top_k": "top_k"})


class ServerDialect(msgspec.Struct, frozen=True):
    """The fields that one kind of server understands."""

    title: str
    """The program's name."""
    sampling: Mapping[str, str] = _NONE
    """Keys of a request by the name of the generation option, beyond those of OpenAI's API."""
    thinking: Literal["template", "effort", ""] = ""
    """Switch of thinking: a variable of the chat template, OpenAI's reasoning_effort, or no known way."""
    reasoning_key: str = "reasoning_content"
    """The field of earlier messages that holds their reasoning."""
    extras: tuple[Literal["progress", "answer_now", "budget"], ...] = ()
    """llama-server's extensions: progress of the prompt, ending the thinking, and limiting it."""
    continues: Literal["flag", "last_message", ""] = ""
    """How a partial answer is continued: a flag of the request, whenever the last message is the assistant's, or not
    at all."""

    @property
    def unused_options(self) -> tuple[str, ...]:
        """Names of the generation options that are not sent, because this kind of server has nothing like them."""
        unused = [key for key in _LLAMA_SAMPLING if key not in self.sampling]
        unused += _OF_THE_WORKER
        if self.thinking != "template":
            unused += ["preserve_thinking", "reasoning_effort"]
        if "budget" not in self.extras:
            unused += ["thinking_budget", "thinking_close"]
        if "progress" not in self.extras:
            unused.append("cache_prompt")
        return tuple(unused)


DIALECTS: Final[Mapping[ServerKind, ServerDialect]] = MappingProxyType(
    {
        "llama-server": ServerDialect(
            "llama-server", _LLAMA_SAMPLING, "template", extras=("progress", "answer_now", "budget"),
            continues="last_message",
        ),
        "qwendesk": ServerDialect("QwenDesk", _LLAMA_SAMPLING, "template"),
        "vllm": ServerDialect("vLLM", _VLLM_SAMPLING, "template", "reasoning", continues="flag"),
        "sglang": ServerDialect("SGLang", _VLLM_SAMPLING, "template", continues="flag"),
        "lmstudio": ServerDialect("LM Studio", MappingProxyType({"top_k": "top_k", "repeat_penalty": "repeat_penalty"}),
                            "effort"),
        "ollama": ServerDialect("Ollama", thinking="effort", reasoning_key="reasoning"),
        "strata": ServerDialect("Strata", _TOP_K, "template"),
        "freetoken": ServerDialect("FreeToken", _TOP_K, "template"),
        "lemonade": ServerDialect("Lemonade"),
        "jan": ServerDialect("Jan"),
        "koboldcpp": ServerDialect("KoboldCpp"),
        "docker": ServerDialect("Docker Model Runner"),
        "exo": ServerDialect("exo"),
        "other": ServerDialect(UNKNOWN_PROGRAM),
    }
)  # fmt: skip
