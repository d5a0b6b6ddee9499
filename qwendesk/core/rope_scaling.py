"""RoPE scaling: how a model works with a longer context than it was trained on.

llama.cpp multiplies every position by the frequency scale, so 0.25 fits four times as many positions into the trained
range. YaRN is the variant that Qwen's model cards describe. Without a scale, llama.cpp accepts the name yarn and
changes nothing (llama-context.cpp: the factor is 1 / rope_freq_scale).
"""

import msgspec

from qwendesk.core.architectures import architecture_named
from qwendesk.core.model_facts import ModelFacts
from qwendesk.core.options import LoadOptions

# The smallest factor that reaches the context is used, because each one costs quality in short chats.
_FACTORS = (2, 4)
# The longest context that the model cards of Qwen3.5 and Qwen3.6 name for YaRN; four times 262,144 would be more.
_LONGEST_CONTEXT = 1_010_000


def longest_context(architecture: str, trained: int) -> int:
    """Return the most tokens of context, with YaRN where it is known to work; 0 if `trained` is unknown (0)."""
    if not architecture_named(architecture).has_yarn:
        return trained
    return max(trained, min(trained * _FACTORS[-1], _LONGEST_CONTEXT))


def yarn_factor(n_ctx: int, trained: int) -> int:
    """Return the smallest YaRN factor that reaches `n_ctx`; 1 if none is needed, and the largest if none reaches it."""
    if not trained or n_ctx <= trained:
        return 1
    return next((factor for factor in _FACTORS if n_ctx <= trained * factor), _FACTORS[-1])


def reached_context(options: LoadOptions, trained: int) -> int:
    """Return how many tokens the RoPE options reach with a model that was trained on `trained` tokens.

    `options` must be decided: YaRN without a frequency scale changes nothing, and reaches no further.
    """
    scale = options.rope_freq_scale
    if options.rope_scaling == "none" or not 0 < scale < 1:
        return trained
    start = options.yarn_orig_ctx if options.rope_scaling == "yarn" and options.yarn_orig_ctx else trained
    return max(trained, round(start / scale))


def with_rope_scaling(options: LoadOptions, facts: ModelFacts) -> LoadOptions:
    """Return `options` with YaRN for a context beyond the trained one, or unchanged if they need or allow none.

    A RoPE scaling or a frequency scale that the user set is kept.
    """
    trained = facts.context_length
    factor = yarn_factor(options.n_ctx, trained)
    if factor == 1 or options.rope_scaling not in ("auto", "yarn"):
        return options
    if options.rope_scaling == "auto" and (
        options.rope_freq_scale or options.n_ctx > longest_context(facts.architecture, trained)
    ):
        return options
    return msgspec.structs.replace(
        options,
        rope_scaling="yarn",
        rope_freq_scale=options.rope_freq_scale or 1 / factor,
        yarn_orig_ctx=options.yarn_orig_ctx or trained,
    )


def without_rope_scaling(options: LoadOptions) -> LoadOptions:
    """Return `options` without the YaRN that `with_rope_scaling` adds, so that it can be decided for another context.

    Other values, which the user must have set, are kept.
    """
    if options.rope_scaling != "yarn" or not options.yarn_orig_ctx:
        return options
    if options.rope_freq_scale != 1 / yarn_factor(options.n_ctx, options.yarn_orig_ctx):
        return options
    return msgspec.structs.replace(options, rope_scaling="auto", rope_freq_scale=0.0, yarn_orig_ctx=0)
