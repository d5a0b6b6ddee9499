"""The state of a picked folder in the user's language."""

from qwendesk.core.folder_state import FolderState
from qwendesk.core.number_format import show_count
from qwendesk.core.translation import tr, tr_n


def state_text(state: FolderState) -> str:
    """Return how far a folder is in a few words."""
    match state.phase:
        case "waiting" | "listing":
            return tr("looking for files…")
        case "reading":
            return tr("reading {0} of {1} files", show_count(state.n_seen), show_count(state.n_found))
        case "failed":
            return tr("can't be read")
        case "ready":
            files = tr_n("{0} file", "{0} files", state.n_files)
            return f"{files}, {problems_text(state)}" if state.n_problems else files


def problems_text(state: FolderState) -> str:
    """Return how many files could not be read."""
    return tr_n("{0} can't be read", "{0} can't be read", state.n_problems)


def has_problem(state: FolderState) -> bool:
    return state.phase == "failed" or bool(state.n_problems) or bool(state.note)
