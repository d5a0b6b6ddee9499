"""What the list of models says, made from frozen values. No widgets here."""

from pathlib import Path

from qwendesk.core.units import show_bytes
from qwendesk.hub.deleting import Deletion
from qwendesk.hub.findings import Fix
from qwendesk.hub.library import LibraryModel
from qwendesk.hub.library_places import ORIGIN_NAMES
from qwendesk.ui.bridges.models import ModelEntry, Work
from qwendesk.ui.kit.text import tr, tr_n

_MOST_NAMES = 4


def details(model: LibraryModel) -> str:
    """Quant, size, parts and pictures: "Q4_K_M · 20.5 GB · 3 parts · reads pictures"."""
    facts, kind = model.facts, model.facts.kind if model.facts is not None else ""
    parts = [facts.quant if facts is not None else "", show_bytes(model.n_bytes)]
    if len(model.files) > 1:
        parts.append(tr_n("{0} part", "{0} parts", len(model.files)))
    if kind == "mmproj":
        parts.append(tr("picture file"))
    elif kind and kind != "model":
        parts.append(tr("helper file"))
    if model.mmproj is not None:
        parts.append(tr("reads pictures"))
    return " · ".join(part for part in parts if part)


def place(model: LibraryModel) -> str:
    """Whose file it is; "" for one in a folder of ours."""
    return "" if model.origin == "ours" else ORIGIN_NAMES[model.origin]


def place_hint(model: LibraryModel) -> str:
    if model.origin == "folder":
        return tr("In a folder that you added: {0}", model.place)
    return tr("It belongs to {0}. QwenDesk uses it in place and never changes it.", ORIGIN_NAMES[model.origin])


def work_text(work: Work) -> str:
    """ "Reading every byte · 3.1 of 20.5 GB"."""
    if not work.n_done:
        words = {"check": tr("Waiting to read"), "move": tr("Preparing"), "download": tr("In the download queue")}
        return words[work.kind]
    words = {"check": tr("Reading every byte"), "move": tr("Copying and comparing"), "download": tr("Downloading")}
    return tr("{0} · {1} of {2}", words[work.kind], show_bytes(work.n_done), show_bytes(work.n_bytes))


def button_text(entry: ModelEntry) -> str:
    """The one button of the state; "" for none."""
    state = entry.state
    if state.action == "verify":
        return tr("Verify")
    return state.fix.label if state.action == "fix" and state.fix is not None else ""


def fix_hint(fix: Fix) -> str:
    where = f"{fix.repo}/{fix.path}" if fix.path else fix.repo
    return tr("{0}: {1}", fix.label, where) if where else fix.label


def total_text(entries: tuple[ModelEntry, ...]) -> str:
    """How many there are, and what they take."""
    if not entries:
        return ""
    n_bytes = sum(entry.model.n_bytes for entry in entries)
    return tr_n("{0} file set · {1}", "{0} models and files · {1}", len(entries), show_bytes(n_bytes))


def deletion_text(deletion: Deletion, *, permanently: bool) -> str:
    """What goes, by name and bytes."""
    names = ", ".join(Path(file.path).name for file in deletion.files[:_MOST_NAMES])
    if len(deletion.files) > _MOST_NAMES:
        names = tr("{0} and {1} more", names, len(deletion.files) - _MOST_NAMES)
    size = show_bytes(deletion.n_bytes)
    if permanently:
        return tr("{0} would be deleted for good, and cannot be brought back: {1}.", size, names)
    return tr("{0} go to the trash: {1}.", size, names)


def matches(entry: ModelEntry, words: str) -> bool:
    """Whether every word is in the name, the repository, the quant or the owner."""
    model = entry.model
    quant = model.facts.quant if model.facts is not None else ""
    text = f"{model.name} {model.repo} {quant} {ORIGIN_NAMES[model.origin]}".lower()
    return all(word in text for word in words.lower().split())
