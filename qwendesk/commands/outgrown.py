"""The next step when this PC's engine is outgrown: programs wait for a turn, or a model doesn't fit. Pure functions.

The engine serves one request at a time. vLLM serves many at once from one copy of the weights, but keeps all of them in
video memory, and loads the formats that Qwen publishes rather than GGUF files (docs.vllm.ai, "Quantization").
"""

from typing import Literal

import msgspec

from qwendesk.commands.command_writer import command
from qwendesk.commands.gpu_split import Split, best_split
from qwendesk.commands.serving import WORK_BYTES, Serving, fitting_format, needed_bytes, smallest_format
from qwendesk.core.generation_options import GenerationOptions
from qwendesk.core.options import LoadOptions
from qwendesk.core.translation import tr, tr_n
from qwendesk.core.units import show_bytes

# From so many waiting programs on, the next step is named. One that waits now and then is no trouble.
MANY_WAITING = 2
# Makers of the cards that vLLM runs on (docs.vllm.ai, "GPU"). It doesn't use Apple's GPUs.
_RUN_ON: frozenset[str] = frozenset({"nvidia", "amd"})

Cause = Literal["waiting", "memory"]


class NextStep(msgspec.Struct, frozen=True):
    """A problem and the next step."""

    cause: Cause
    sentence: str
    command: str = ""
    """vLLM's command for this PC, with comments; "" if vLLM can't run the model here."""


def next_step(
    load: LoadOptions,
    answer: GenerationOptions,
    serving: Serving,
    *,
    n_waiting: int = 0,
    fits: bool = True,
    windows: bool = False,
) -> NextStep | None:
    """Return what the next step is; None if nothing is outgrown.

    `load` are the decided options of the model, `n_waiting` how many programs have waited at once at the local server,
    `fits` whether the model fits into this PC's memory.
    """
    if fits and n_waiting < MANY_WAITING:
        return None
    cause: Cause = "waiting" if fits else "memory"
    problem = (
        tr_n(
            "{0} program waits for its turn, because the engine answers one request at a time.",
            "{0} programs wait for their turn, because the engine answers one request at a time.",
            n_waiting,
        )
        if fits
        else tr("This model doesn't fit into the memory of this PC.")
    )
    repository = fitting_format(serving) if {card.maker for card in serving.cards} <= _RUN_ON else ""
    if not repository:
        return NextStep(cause, f"{problem} {_elsewhere(cause, serving)}")
    sentences = (
        problem,
        tr("vLLM answers many at once, and {0} fits the cards of this PC.", repository),
        _split_text(best_split(serving.cards, serving.n_heads, serving.n_kv_heads)),
        tr("Start it with its command, then add it under Server > Other engines."),
    )
    text = command("vllm", load, answer, serving, windows=windows)
    return NextStep(cause, " ".join(filter(None, sentences)), text)


def _split_text(split: Split) -> str:
    """Return how the cards share the model; "" with one card."""
    if split.tensor > 1 and split.pipeline > 1:
        return tr(
            "Cards that NVLink joins share their layers (tensor parallel {0}), and the pairs take turns (pipeline "
            "parallel {1}).",
            split.tensor, split.pipeline,
        )  # fmt: skip
    if split.tensor > 1:
        return tr("All {0} cards share every layer (tensor parallel).", split.tensor)
    if split.pipeline > 1:
        return tr("Each of the {0} cards takes some of the layers (pipeline parallel).", split.pipeline)
    return ""


def _elsewhere(cause: Cause, serving: Serving) -> str:
    """Return what to do if vLLM can't run this model here."""
    sentences = [tr("Choose a smaller one under Models > For this PC.")] if cause == "memory" else []
    repository = smallest_format(serving)
    needed = show_bytes(needed_bytes(serving) + WORK_BYTES) if repository else ""
    if repository and serving.cards:
        sentences.append(
            tr(
                "No format that vLLM loads fits the cards of this PC: {0} needs about {1} of video memory.",
                repository,
                needed,
            )
        )
    elif repository:
        sentences.append(tr("vLLM needs about {0} of video memory for {1}.", needed, repository))
    sentences.append(
        tr("A PC that has it can run it with vLLM or llama-server. Add that under Server > Other engines.")
        if cause == "memory"
        else tr("A PC that has it can answer many at once. Add that under Server > Other engines.")
    )
    return " ".join(sentences)
