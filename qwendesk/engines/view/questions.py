"""Dialogs: when to change the engine while an answer is in progress, and whether to add or delete an engine."""

from collections.abc import Callable

from PySide6.QtWidgets import QWidget

from qwendesk.core.translation import tr
from qwendesk.core.units import show_bytes
from qwendesk.engines.pack_file import PackFile
from qwendesk.engines.pack_texts import pack_facts
from qwendesk.engines.view.row_texts import EngineLine
from qwendesk.widgets.question_dialog import DialogButton, QuestionDialog


def ask_when(parent: QWidget, change: Callable[[bool], None]) -> None:
    """Ask whether to stop the answer (`change(True)`) or to wait for its end (`change(False)`). Esc changes nothing."""
    answers = (
        DialogButton("after", tr("After the answer"), lambda: change(False)),
        DialogButton("now", tr("Stop and change"), lambda: change(True)),
        DialogButton("keep", tr("Keep this engine")),
    )
    question = tr("An answer is in progress. Change the engine now?")
    consequence = tr("Changing now stops the answer. The model is loaded again.")
    QuestionDialog(parent, "engine.when", question, consequence, answers, default="after").open()


def ask_addition(parent: QWidget, pack: PackFile, add: Callable[[], None]) -> None:
    """Ask whether to add an engine from a file. Enter and Esc don't add one that is not on the app's list."""
    facts = pack_facts(pack, digits_per_group=16)
    answers = (DialogButton("yes", tr("Add engine"), add), DialogButton("no", tr("Cancel")))
    question = tr("Add the engine {0}?", pack.manifest.name)
    default = "yes" if pack.is_listed else "no"
    QuestionDialog(parent, "engine.addition", question, "\n\n".join(facts), answers, default=default).open()


def ask_deletion(parent: QWidget, line: EngineLine, delete: Callable[[], None], *, can_download: bool) -> None:
    """Ask whether to delete an engine. Enter and Esc both keep it."""
    freed = tr("This frees {0}.", show_bytes(line.n_bytes)) if line.n_bytes else tr("Its folder is removed.")
    later = tr("You can download it again.") if can_download else tr("You can't download it again from here.")
    answers = (DialogButton("yes", tr("Delete"), delete), DialogButton("no", tr("Keep")))
    question = tr("Delete {0}?", line.title)
    QuestionDialog(parent, "engine.deletion", question, f"{freed} {later}", answers, default="no").open()
