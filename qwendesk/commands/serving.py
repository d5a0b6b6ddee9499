"""Which of Qwen's original repositories fits the graphics cards, for programs that don't load GGUF files.

vLLM and SGLang keep the whole model in video memory. Qwen publishes it in up to three formats. Their sizes here are
estimates from the number of parameters in the name, and the commands say "about".
"""

import functools
import re
from collections.abc import Mapping, Sequence

import msgspec

from qwendesk.commands.gpu_split import Card, CardMaker
from qwendesk.core.devices import DeviceInfo, GpuLink
from qwendesk.core.options import LoadOptions
from qwendesk.core.plan import Plan
from qwendesk.core.units import GIB
from qwendesk.hub.catalog import load_catalog
from qwendesk.hub.catalog_schema import CatalogModel

# Suffixes of the repositories, best quality first, with bytes per parameter.
#
# 0.75 is that of a 25 GB file of 35B with 4-bit experts, whose attention stays in 16 bit.
_FORMATS: tuple[tuple[str, float], ...] = (("", 2.0), ("-FP8", 1.05), ("-GPTQ-Int4", 0.75))
# Repositories to name if the model doesn't fit, best first, with the bytes of KV cache per token in 16 bit.
#
# Those are (layers with attention) x (KV heads) x 512 values x 2 bytes, with the numbers of the model's header.
_SMALLER: tuple[tuple[str, int], ...] = (
    ("Qwen/Qwen3.8-27B-FP8", 65_536),
    ("Qwen/Qwen3.5-27B-GPTQ-Int4", 65_536),
    ("Qwen/Qwen3.5-9B", 32_768),
    ("Qwen/Qwen3.5-4B", 32_768),
)
# Activations, CUDA graphs and the vision encoder on each card, roughly.
WORK_BYTES = 2 * GIB
_HIGHEST_SHARE, _USUAL_SHARE = 0.95, 0.9


class Serving(msgspec.Struct, frozen=True, kw_only=True):
    """The facts about the model and the PC that a command for vLLM, SGLang or MLX needs."""

    base_repo: str = ""
    """The repository of the unquantised model; "" if unknown."""
    cards: tuple[Card, ...] = ()
    kv_bytes: int = 0
    """Size of the KV cache that the context needs in 16 bit."""
    n_heads: int = 0
    """Attention heads; 0 if unknown."""
    n_kv_heads: int = 0

    @property
    def is_mac(self) -> bool:
        return any(card.maker == "apple" for card in self.cards)


def cards_of(devices: Sequence[DeviceInfo], plan: Plan | None, links: Sequence[GpuLink] = ()) -> tuple[Card, ...]:
    """Return the GPUs for a command of another program, with what the plan may use of each and how they are linked."""
    budgets = {gpu.name: gpu.budget_bytes for gpu in plan.memory.gpus} if plan is not None else {}
    by_name = {link.device: link for link in links}
    gpus = [device for device in devices if device.kind == "gpu" and device.total_bytes]
    positions = {device.name: position for position, device in enumerate(gpus)}
    cards = []
    for device in gpus:
        link = by_name.get(device.name, GpuLink(device.name))
        joined = tuple(sorted(positions[name] for name in link.nvlinks if name in positions))
        total, budget = device.total_bytes or 0, budgets.get(device.name)
        cards.append(Card(total, budget, _maker(device), link.pcie_bytes_s, joined))
    return tuple(cards)


def _maker(device: DeviceInfo) -> CardMaker:
    if device.shares_ram:
        return "apple"
    if device.backend.upper() == "CUDA":
        return "nvidia"
    name = device.description.lower()
    return next((maker for maker, words in _MAKERS if any(word in name for word in words)), "")


_MAKERS: tuple[tuple[CardMaker, tuple[str, ...]], ...] = (("nvidia", ("nvidia", "rtx")), ("amd", ("amd", "radeon")))


def kv_bytes_of(plan: Plan | None) -> int:
    """Return the size of the plan's KV cache in 16 bit, which other programs use; 0 without a plan."""
    if plan is None:
        return 0
    n_bytes = sum(device.kv_bytes for device in (*plan.memory.gpus, plan.memory.ram))
    return round(n_bytes * _BYTES_IN_16_BIT.get(plan.options.type_k, 1.0))


# How much larger a cache of a type is in 16 bit.
_BYTES_IN_16_BIT: Mapping[str, float] = {"f32": 0.5, "q8_0": 64 / 34, "q4_0": 64 / 18, "iq4_nl": 64 / 18}


@functools.cache
def _originals() -> Mapping[str, CatalogModel]:
    return {model.base_repo: model for model in load_catalog().models}


def original_model(base_repo: str) -> CatalogModel | None:
    """Return what the app's catalog knows of the maker's repository; None if it doesn't know it."""
    return _originals().get(base_repo)


def fitting_repository(load: LoadOptions, serving: Serving, program: str) -> tuple[str, list[str]]:
    """Return the repository of the best format that fits the cards, and what to say about it."""
    base_repo, cards = serving.base_repo, serving.cards
    if not base_repo:
        return load.model, [
            f"{program} loads GGUF files only for some models. Name the repository of the original model instead."
        ]
    parameters = parameters_of(base_repo)
    if not cards or not parameters or serving.is_mac:
        return base_repo, [f"{program} needs the whole model in video memory. Check that this format fits your cards."]
    room = room_of(cards)
    repo = fitting_format(serving)
    if repo:
        sentence = f"{repo} is about {gb(_weights(repo))} and fits into the {gb(room)} that {program} can use for it."
        return repo, [sentence, "It is another download: your GGUF file isn't used."]
    repo = smallest_format(serving)
    notes = [
        f"No format from Qwen fits: {repo} needs about {gb(needed_bytes(serving))} with this context, and the cards "
        f"have {gb(room)} for it. {program} can't keep a part in RAM at a useful speed, as llama-server keeps experts."
    ]
    smaller = _smaller(parameters, load.n_ctx, room)
    notes.append(
        f"What would fit with this context: {smaller}, about {gb(_weights(smaller))}."
        if smaller
        else "Nothing of Qwen's fits with this context. Use llama-server."
    )
    return repo, notes


def fitting_format(serving: Serving) -> str:
    """Return the repository of the best format that fits the cards with the context; "" if none is known to."""
    if not serving.cards or not parameters_of(serving.base_repo):
        return ""
    room = room_of(serving.cards)
    return next((repo for repo in _formats(serving.base_repo) if _weights(repo) + serving.kv_bytes <= room), "")


def smallest_format(serving: Serving) -> str:
    """Return the repository of the smallest format; "" if the original model or its size isn't known."""
    return _formats(serving.base_repo)[-1] if parameters_of(serving.base_repo) else ""


def needed_bytes(serving: Serving) -> int:
    """Return about how much video memory the smallest format needs with the context.

    On each card, there are `WORK_BYTES` beside it.
    """
    return _weights(smallest_format(serving)) + serving.kv_bytes


def _formats(base_repo: str) -> list[str]:
    """Return the repositories of the formats that Qwen publishes of a model, best quality first."""
    model = original_model(base_repo)
    suffixes = ("", *model.formats) if model is not None else ("",)
    return [base_repo + suffix for suffix, _ in _FORMATS if suffix in suffixes]


def memory_share(cards: Sequence[Card]) -> float:
    """Return the share of each card that a program may take: what a plan may use of the fullest one."""
    shares = [card.budget_bytes / card.total_bytes for card in cards if card.budget_bytes and card.total_bytes]
    return int(100 * min([*shares, _HIGHEST_SHARE])) / 100 if shares else _USUAL_SHARE


def room_of(cards: Sequence[Card]) -> int:
    """Return the bytes for weights and KV cache; every card holds as much as the smallest."""
    smallest = min(card.total_bytes for card in cards)
    return max(0, len(cards) * round(smallest * memory_share(cards) - WORK_BYTES))


def parameters_of(repo: str) -> float:
    """Return the number of parameters that the name gives, as in "35B-A3B"; 0 if it gives none."""
    found = re.search(r"-(\d+(?:\.\d+)?)B(?:-|$)", repo)
    return float(found[1]) * 1e9 if found else 0


def gb(n_bytes: float) -> str:
    return f"{n_bytes / GIB:.0f} GB"


def _weights(repo: str) -> int:
    n_bytes = next(n_bytes for suffix, n_bytes in reversed(_FORMATS) if repo.endswith(suffix))
    return round(parameters_of(repo) * n_bytes)


def _smaller(parameters: float, n_ctx: int, room: int) -> str:
    """Return the first repository of a model with fewer parameters that fits with this context; "" if none does."""
    fitting = (
        repo
        for repo, kv_bytes in _SMALLER
        if parameters_of(repo) < parameters and _weights(repo) + kv_bytes * n_ctx <= room
    )
    return next(fitting, "")
