"""The options for generating an answer: sampling, repetition, thinking and output.

The field names are the keys of `--set key=value` and of the settings table (core/settings.py). The names in requests
and in other programs stand beside them; the local server, the client of other servers and the commands take them from
there. A chat uses the sampling values of its preset (core/presets.py), and the values here only for what the preset
leaves out.
"""

from typing import Annotated, ClassVar, Literal

import msgspec

from qwendesk.core.settings import Setting

REASONING_EFFORTS = ("minimal", "low", "medium", "high", "xhigh", "max")
"""The values that chat templates know, least effort first. Qwen3.8's takes low, medium and xhigh."""

ChatFormat = Literal["gemma", "llama3", "mistral", "chatml", "plain", "none"]
"""The built-in chat templates: of families, with the names of the roles, and without anything around the text."""

_SAMPLING, _REPETITION, _THINKING, _OUTPUT = "Sampling", "Repetition", "Thinking", "Output"
_CONTEXT, _SPEED = "Context", "Speed"
_QWEN_CARD = "Qwen3.5 model card"


class GenerationOptions(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How to generate an answer. Every request contains all of these options, so a change needs no reload."""

    needs_reload: ClassVar[bool] = False

    temperature: Annotated[
        float,
        Setting("Temperature", "--temp", "Randomness. 0 always picks the most likely token.", _SAMPLING,
                low=0, high=10, source=_QWEN_CARD, basic=True,
                ollama="temperature", vllm="temperature", openai="temperature"),
    ] = 1.0
    top_k: Annotated[
        int, Setting("Top-k", "--top-k", "Pick only from the k most likely tokens. 0 turns it off.", _SAMPLING,
                     low=0, high=1_000_000, ollama="top_k", vllm="top_k", llama_server="top_k")
    ] = 20
    top_p: Annotated[
        float, Setting("Top-p", "--top-p",
                       "Pick only from the most likely tokens whose probabilities add up to p.", _SAMPLING,
                       low=0, high=1, ollama="top_p", vllm="top_p", openai="top_p")
    ] = 0.95
    min_p: Annotated[
        float, Setting("Min-p", "--min-p",
                       "Ignore tokens below this fraction of the most likely one's probability.", _SAMPLING,
                       low=0, high=1, ollama="min_p", vllm="min_p", llama_server="min_p")
    ] = 0.0
    typical_p: Annotated[
        float, Setting("Typical-p", "--typical", "Locally typical sampling. 1 turns it off.", _SAMPLING,
                       low=0, high=1, ollama="typical_p", llama_server="typical_p")
    ] = 1.0
    repeat_penalty: Annotated[
        float,
        Setting("Repeat penalty", "--repeat-penalty", "Values above 1 make recent tokens less likely.", _REPETITION,
                low=0.01, high=10, ollama="repeat_penalty", vllm="repetition_penalty", llama_server="repeat_penalty"),
    ] = 1.0
    frequency_penalty: Annotated[
        float,
        Setting("Frequency penalty", "--frequency-penalty", "Makes a token less likely each time it occurs.",
                _REPETITION, low=-10, high=10,
                ollama="frequency_penalty", vllm="frequency_penalty", openai="frequency_penalty"),
    ] = 0.0
    presence_penalty: Annotated[
        float,
        Setting("Presence penalty", "--presence-penalty",
                "Makes every token that occurred less likely. Qwen3.5 needs 1.5 for thinking, or it may loop.",
                _REPETITION, low=-10, high=10, source=_QWEN_CARD,
                ollama="presence_penalty", vllm="presence_penalty", openai="presence_penalty"),
    ] = 1.5
    penalty_last_n: Annotated[
        int,
        Setting("Penalty window", "--repeat-last-n",
                "How many recent tokens of thinking and answer the penalties cover. Model cards mean all. 0 is none. "
                "llama-server's penalties cover 64 tokens, also with the values that are copied for it.",
                _REPETITION, unit="tokens", low=-1, high=4_194_304, minus_one="Whole answer",
                ollama="repeat_last_n", llama_server="repeat_last_n"),
    ] = -1
    dry_multiplier: Annotated[
        float, Setting("DRY strength", "--dry-multiplier", "Penalises repeated phrases. 0 turns it off.",
                       _REPETITION, low=0, high=100, llama_server="dry_multiplier")
    ] = 0.0
    dry_base: Annotated[
        float, Setting("DRY base", "--dry-base",
                       "How fast the penalty grows with each token beyond the allowed length.",
                       _REPETITION, low=0, high=100, llama_server="dry_base")
    ] = 1.75
    dry_allowed_length: Annotated[
        int, Setting("DRY allowed length", "--dry-allowed-length",
                     "Repetitions up to this length aren't penalised.", _REPETITION,
                     unit="tokens", low=0, high=100_000, llama_server="dry_allowed_length")
    ] = 2
    dry_penalty_last_n: Annotated[
        int, Setting("DRY window", "--dry-penalty-last-n",
                     "How many recent tokens DRY covers. 0 is none.", _REPETITION, unit="tokens",
                     low=-1, high=4_194_304, minus_one="Whole context", llama_server="dry_penalty_last_n")
    ] = -1
    break_loops: Annotated[
        bool,
        Setting("Break loops", "",
                "Ends thinking that goes round in circles and begins the answer. Stops an answer that repeats itself.",
                _REPETITION),
    ] = True
    xtc_probability: Annotated[
        float, Setting("XTC probability", "--xtc-probability",
                       "Probability of removing the most likely tokens. 0 turns it off.",
                       _SAMPLING,
                       low=0, high=1, llama_server="xtc_probability")
    ] = 0.0
    xtc_threshold: Annotated[
        float, Setting("XTC threshold", "--xtc-threshold",
                       "Tokens above this probability may be removed.", _SAMPLING, low=0, high=1,
                       llama_server="xtc_threshold")
    ] = 0.1
    seed: Annotated[
        int, Setting("Seed", "--seed", "The same seed gives the same answer. Random picks a new one each time.",
                     _SAMPLING, low=-1, high=4_294_967_294, minus_one="Random",
                     ollama="seed", vllm="seed", openai="seed")
    ] = -1
    logit_bias: Annotated[
        tuple[str, ...],
        Setting("Logit bias", "--logit-bias", "TOKEN=BIAS pairs, where TOKEN is a token id and BIAS a number or -inf.",
                _SAMPLING, placeholder="271=-1.5; 198=-inf"),
    ] = ()
    stop: Annotated[
        tuple[str, ...],
        Setting("Stop texts", "--reverse-prompt",
                "The answer ends before any of these texts. They have no effect in thinking.",
                _OUTPUT, ollama="stop"),
    ] = ()
    max_tokens: Annotated[
        int,
        Setting("Longest output", "--predict",
                "The most tokens of thinking and answer together. The context is always a limit. The model cards "
                "advise 32,768 for most questions and 81,920 for hard mathematics and programming.",
                _OUTPUT,
                unit="tokens", low=-1, high=4_194_304, minus_one="Unlimited", ollama="num_predict", vllm="max_tokens"),
    ] = -1
    parallel_tool_calls: Annotated[
        bool,
        Setting("Several tool calls at once", "",
                "Lets the model call several tools before it sees the first result.", _OUTPUT),
    ] = False
    json_schema: Annotated[
        str, Setting("JSON schema", "--json-schema", "The answer follows this schema (JSON text).", _OUTPUT)
    ] = ""
    grammar: Annotated[
        str,
        Setting("Grammar", "--grammar",
                "The answer follows this GBNF grammar, starting at its rule root. Can't be combined with a JSON "
                "schema.",
                _OUTPUT, is_block=True, llama_server="grammar"),
    ] = ""
    enable_thinking: Annotated[
        bool, Setting("Thinking", "--reasoning", "Think before answering: better at hard questions, but slower.",
                      _THINKING, basic=True)
    ] = True
    preserve_thinking: Annotated[
        bool,
        Setting("Send earlier thinking", "--chat-template-kwargs",
                "Lets the model see its earlier thinking, which uses up context. On for Qwen3.8, which expects it.",
                _THINKING),
    ] = False
    reasoning_effort: Annotated[
        Literal["auto", "minimal", "low", "medium", "high", "xhigh", "max"],
        Setting("Reasoning effort", "--chat-template-kwargs",
                "How much the model thinks. Only for chat templates that take it, such as Qwen3.8's.", _THINKING),
    ] = "auto"
    chat_format: Annotated[
        ChatFormat | Literal["auto"],
        Setting("Built-in chat template", "",
                "How questions and answers are marked, for models without a chat template of their own.", _OUTPUT),
    ] = "auto"
    thinking_budget: Annotated[
        int,
        Setting("Thinking budget", "--reasoning-budget", "The most tokens to think before answering.",
                _THINKING, unit="tokens", low=-1, high=4_194_304, minus_one="Unlimited", basic=True),
    ] = -1
    thinking_close: Annotated[
        str,
        Setting("End of interrupted thinking", "--reasoning-budget-message",
                "Inserted when the budget is used up or you choose Answer now. Must contain </think>.", _THINKING,
                pattern=r"[\s\S]*</think>[\s\S]*", example="a text that contains </think>", is_block=True),
    ] = "\n</think>\n\n"
    context_overflow: Annotated[
        Literal["stop", "drop_oldest"],
        Setting("When the context is full", "", "Stop ends the answer. Drop the oldest leaves out the oldest messages.",
                _CONTEXT),
    ] = "stop"
    cache_prompt: Annotated[
        bool, Setting("Use the prompt cache", "--no-cache-prompt",
                      "If off, the whole chat is processed again for each answer.", _SPEED)
    ] = True
