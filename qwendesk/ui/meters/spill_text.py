"""What the spill banner says: a pure function of the meters and of what relief offers."""

from typing import Literal

import msgspec

from qwendesk.core.units import GIB, MIB, show_bytes, show_duration, show_expected, show_rate, show_tokens
from qwendesk.hardware.spill import SpillState
from qwendesk.services.meters.bars import Meters, Spill, Taker
from qwendesk.services.meters.relief import Fix, FixId, Relief
from qwendesk.ui.kit.text import tr, tr_n

BannerButton = FixId | Literal["load_again", "stop_waiting"]


class Choice(msgspec.Struct, frozen=True):
    """One button."""

    id: BannerButton
    text: str
    tooltip: str


class SpillStory(msgspec.Struct, frozen=True):
    """One banner. `key` stays the same while only numbers change: a dismissed banner stays away with it."""

    key: str
    tone: Literal["bad", "warn"]
    title: str
    sentence: str
    choices: tuple[Choice, ...] = ()
    note: str = ""
    busy: bool = False
    """A fix was chosen: the buttons rest."""


def story_of(meters: Meters, relief: Relief, *, on_windows: bool) -> SpillStory | None:
    """The banner to show; None when nothing is wrong."""
    if relief.failure is not None and meters.spill is None and relief.waiting is None:
        return SpillStory("failed", "bad", relief.failure.title, relief.failure.sentence)
    if relief.waiting is not None:
        return _waiting(relief)
    spill = meters.spill
    if spill is None:
        return None
    title = tr("VRAM spills") if spill.state is SpillState.SPILLING else tr("VRAM probably spills")
    return SpillStory(
        key=str(spill.state.value),
        tone="bad",
        title=title,
        sentence=" ".join(part for part in (_cost(spill), _taken(spill.taker)) if part),
        choices=tuple(_choice(fix, _reading(relief)) for fix in relief.fixes),
        note=_note(meters, relief, on_windows=on_windows),
        busy=relief.pending is not None,
    )


def _cost(spill: Spill) -> str:
    where = (
        tr("{0} of the model sits in shared memory", _size(spill.excess_bytes))
        if spill.excess_bytes
        else tr("The GPU is busy at low power and answers come slowly, as when memory is moved")
    )
    if spill.best_tok_s is not None and spill.now_tok_s is not None:
        return tr("{0}: {1} → {2} tok/s.", where, show_rate(spill.best_tok_s), show_rate(spill.now_tok_s))
    if spill.slowdown is not None:
        low, high = (f"{factor:.0f}" if factor >= 3 else f"{factor:.1f}" for factor in spill.slowdown)
        return tr("{0}: answers come {1} to {2} times slower, by what others measured.", where, low, high)
    return tr("{0}.", where)


def _taken(taker: Taker | None) -> str:
    if taker is None:
        return ""
    if not taker.name:
        return tr("Other programs took {0} since the model was loaded.", _size(taker.n_bytes))
    return tr("{0} took {1} since the model was loaded.", taker.name, _size(taker.n_bytes))


def _choice(fix: Fix, reading: str) -> Choice:
    text, tip = _words(fix)
    if fix.expected_tok_s is not None:
        text = tr("{0}, about {1} tok/s", text, show_expected(fix.expected_tok_s))
        tip = tr("{0}. The speed is an estimate.", tip)
    return Choice(fix.id, text, tr("{0}\n{1}", tip, reading))


def _words(fix: Fix) -> tuple[str, str]:
    """A button's text and tooltip."""
    layers = fix.expert_layers
    if fix.id == "experts":
        text = tr_n("{0} expert layer to CPU", "{0} expert layers to CPU", layers)
        return text, tr("Keeps everything else on the GPU, and the whole chat")
    if fix.id == "both":
        text = tr_n("Pictures + {0} expert layer to CPU", "Pictures + {0} expert layers to CPU", layers)
        return text, tr("Neither is enough alone; everything else stays on the GPU, and the whole chat")
    if fix.id == "layers":
        text = tr_n("{0} layer to CPU", "{0} layers to CPU", fix.cpu_layers)
        return text, tr("Nothing gentler is enough; the whole chat stays")
    if fix.id == "context":
        n_ctx = fix.options.n_ctx if fix.options is not None else 0
        return tr("Shorter context ({0})", show_tokens(n_ctx)), tr("The chat as it is stays whole, with room to go on")
    if fix.id == "vision":
        return tr("Pictures to CPU"), tr("Pictures are read slower; text is as fast as before the spill")
    if fix.id == "kv":
        tip = tr("Halves the context's memory; small slips in formulas were reported in long chats")
        return tr("Smaller cache (q8_0)"), tip
    name = fix.taker.name if fix.taker is not None else ""
    text = tr("Eject until {0} closes", name) if name else tr("Eject until the memory is free")
    return text, tr("Frees all video memory; the model is loaded again when its memory is back")


def _note(meters: Meters, relief: Relief, *, on_windows: bool) -> str:
    parts = [_reading(relief)] if relief.fixes else []
    if relief.pending is not None:
        parts = [tr("Applied as soon as this answer is written.") if meters.answering else tr("Being applied…")]
    if relief.failure is not None:
        parts.insert(0, tr("The last try failed: {0}", relief.failure.sentence))
    nvidia = any(bar.gpu.vendor == "nvidia" for bar in meters.bars)
    if on_windows and nvidia:
        parts.append(
            tr(
                "NVIDIA's driver moves memory instead of failing. With “CUDA - Sysmem Fallback Policy: Prefer No "
                "Sysmem Fallback” in the NVIDIA Control Panel a model that is too large fails to load instead of "
                "running slowly."
            )
        )
    return " ".join(parts)


def _reading(relief: Relief) -> str:
    if relief.reread_s is not None:
        took = show_duration(relief.reread_s)
        return tr("Applied after this answer; reading the chat again takes about {0}.", took)
    if relief.reread_tokens:
        return tr("Applied after this answer; the chat's {0} tokens are then read again.", f"{relief.reread_tokens:,}")
    return tr("Applied after this answer; the chat stays.")


def _waiting(relief: Relief) -> SpillStory:
    waiting = relief.waiting
    name = waiting.taker.name if waiting is not None and waiting.taker is not None else ""
    sentence = tr("All its video memory is free. It is loaded again, with this chat, when enough memory is back.")
    if name:
        sentence = tr("All its video memory is free for {0}. It is loaded again when enough memory is back.", name)
    return SpillStory(
        key="waiting",
        tone="warn",
        title=tr("The model is ejected for now"),
        sentence=sentence,
        choices=(
            Choice("load_again", tr("Load it now"), tr("Load the model again, whatever memory is free")),
            Choice("stop_waiting", tr("Leave it ejected"), tr("Do not load it again by itself")),
        ),
    )


def _size(n_bytes: int) -> str:
    return show_bytes(n_bytes) if n_bytes >= GIB else tr("{0} MB", f"{n_bytes / MIB:.0f}")
