"""Texts of the list of models. No widgets here."""

from pathlib import Path

from qwendesk.core.translation import join_list, tr, tr_n
from qwendesk.core.units import show_bytes
from qwendesk.hub.findings import FindingFix
from qwendesk.hub.library import LibraryModel
from qwendesk.hub.library_places import ORIGIN_NAMES
from qwendesk.hub.model_deletion import ModelDeletion
from qwendesk.models.model_list import ModelEntry, ModelProgress

_MOST_NAMES = 4


def details_text(model: LibraryModel) -> str:
    """Return the main properties: "Q4_K_M · 20.5 GB · 3 shards · sees pictures"."""
    facts, kind = model.facts, model.facts.kind if model.facts is not None else ""
    parts = [facts.quant if facts is not None else "", show_bytes(model.n_bytes)]
    if len(model.files) > 1:
        parts.append(tr_n("{0} shard", "{0} shards", len(model.files)))
    if kind == "mmproj":
        parts.append(tr("vision file (mmproj)"))
    elif kind == "draft_head":
        parts.append(tr("draft head (MTP)"))
    elif kind and kind != "model":
        parts.append(tr("other file"))
    if model.mmproj is not None:
        parts.append(tr("sees pictures"))
    if model.draft_head is not None:
        parts.append(tr("with draft head"))
    return " · ".join(part for part in parts if part)


def owner_text(model: LibraryModel) -> str:
    """Return the app or folder that the file belongs to; "" for a models folder."""
    if model.origin == "opened":
        return Path(model.place).name or model.place
    return "" if model.origin == "ours" else tr(ORIGIN_NAMES[model.origin])


def owner_hint(model: LibraryModel) -> str:
    if model.origin == "folder":
        return tr("In a folder you added: {0}", model.place)
    if model.origin == "opened":
        return tr("A file you opened, used in place: {0}", model.place)
    return tr(
        "This file belongs to {0}. QwenDesk uses it in place and never changes it.", tr(ORIGIN_NAMES[model.origin])
    )


def progress_text(progress: ModelProgress) -> str:
    """Return "Verifying · 3.1 GB of 20.5 GB", or what the model is waiting for."""
    if not progress.n_done:
        words = {"check": tr("Waiting to verify"), "move": tr("Preparing"), "download": tr("In the download queue")}
        return words[progress.kind]
    words = {"check": tr("Verifying"), "move": tr("Copying"), "download": tr("Downloading")}
    done, total = show_bytes(progress.n_done), show_bytes(progress.n_bytes)
    return tr("{0} · {1} of {2}", words[progress.kind], done, total)


def button_text(entry: ModelEntry) -> str:
    """Return the text of the entry's button; "" if it has none."""
    state = entry.state
    if state.action == "verify":
        return tr("Verify")
    return state.fix.label if state.action == "fix" and state.fix is not None else ""


def fix_hint(fix: FindingFix) -> str:
    where = f"{fix.repo}/{fix.path}" if fix.path else fix.repo
    return tr("{0}: {1}", fix.label, where) if where else fix.label


def total_text(entries: tuple[ModelEntry, ...]) -> str:
    """Return the number of models, and the total size with their vision files and draft heads."""
    if not entries:
        return ""
    n_models = sum(not entry.is_companion for entry in entries)
    n_bytes = sum(entry.model.n_bytes for entry in entries)
    return tr_n("{0} model · {1}", "{0} models · {1}", n_models, show_bytes(n_bytes))


def deletion_text(deletion: ModelDeletion, *, permanently: bool) -> str:
    """Return the files that are deleted, and their size."""
    shown = [Path(file.path).name for file in deletion.files[:_MOST_NAMES]]
    if n_more := len(deletion.files) - len(shown):
        shown.append(tr_n("{0} more", "{0} more", n_more))
    names, size = join_list(shown), show_bytes(deletion.n_bytes)
    if permanently:
        return tr("This permanently deletes {0}: {1}.", size, names)
    return tr("This moves {0} to the trash: {1}.", size, names)


def matches_search(entry: ModelEntry, words: str) -> bool:
    """Return whether the name, repository, quant or owner contains every word."""
    model = entry.model
    quant = model.facts.quant if model.facts is not None else ""
    text = f"{model.name} {model.repo} {quant} {tr(ORIGIN_NAMES[model.origin])}".lower()
    return all(word in text for word in words.lower().split())
