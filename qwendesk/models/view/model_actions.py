"""The actions behind the buttons of My models and of the alerts, and the messages about their results."""

from collections.abc import Coroutine
from pathlib import Path
from typing import Any

from PySide6.QtCore import QObject, Signal
from PySide6.QtWidgets import QWidget

from qwendesk.core.errors import QwenDeskError
from qwendesk.core.translation import join_list, join_sentences, tr
from qwendesk.hub.findings import FindingFix
from qwendesk.hub.model_deletion import DeletionFailure, ModelDeletion
from qwendesk.hub.model_import import How, NotImported
from qwendesk.models.fixes import FixDone, FixStarted, FixToAgree, FixToChoose
from qwendesk.models.services import ModelServices
from qwendesk.models.view.model_texts import deletion_text
from qwendesk.widgets.navigation import Navigation
from qwendesk.widgets.question_dialog import DialogButton, QuestionDialog
from qwendesk.widgets.tasks import window_tasks


class ModelActions(QObject):
    """Runs the actions of the services and announces their results."""

    noticed = Signal(str)
    """The result of the last action, in a sentence."""
    deletion_asked = Signal(object, str)
    """A ModelDeletion for the user to confirm, and why moving it to the trash failed ("" if that wasn't tried)."""

    def __init__(self, services: ModelServices, navigation: Navigation) -> None:
        super().__init__()
        self._services, self._navigation, self._tasks = services, navigation, window_tasks()

    def refresh(self) -> None:
        """Scan the folders."""
        self._start(self._services.library.refresh())

    def load(self, path: str) -> None:
        self._start(self._load(path))

    def show_options(self, path: str) -> None:
        """Show the load options of a model without loading it."""
        self._start(self._show_options(path))

    def verify(self, path: str) -> None:
        self._start(self._verify(path))

    def cancel(self, path: str) -> None:
        """Stop the full check or the move of this model."""
        self._services.checks.cancel(path)
        self._services.moves.cancel(path)

    def check_for_updates(self) -> None:
        """Compare all models with what Hugging Face has now."""
        self._start(self._check_for_updates())

    def fix(self, path: str, fix: FindingFix) -> None:
        self._start(self._fix(path, fix))

    def ask_to_delete(self, path: str) -> None:
        """Ask the user to confirm the deletion, or show why it isn't possible."""
        self._start(self._ask_to_delete(path))

    def delete(self, deletion: ModelDeletion, *, permanently: bool = False) -> None:
        self._start(self._delete(deletion, permanently=permanently))

    def move(self, path: str, folder: str, how: How) -> None:
        """Move or copy the model into `folder`, which becomes a models folder."""
        self._start(self._move(path, Path(folder), how))

    def use_in_place(self, folder: str) -> None:
        self._start(self._services.library.use_in_place(folder))

    def forget_opened(self, path: str) -> None:
        """Take a file that was opened from elsewhere out of the list."""
        self._start(self._services.library.forget_opened(path))

    def include_other_apps(self, included: bool) -> None:
        self._start(self._services.library.include_other_apps(included=included))

    async def _load(self, path: str) -> None:
        self._navigation.load_asked.emit(await self._services.load_options.options_for(Path(path)))

    async def _show_options(self, path: str) -> None:
        self._navigation.options_asked.emit(await self._services.load_options.options_for(Path(path)))

    async def _verify(self, path: str) -> None:
        self._notice_all(await self._services.checks.verify(path))

    async def _check_for_updates(self) -> None:
        troubles = await self._services.checks.compare_with_hub()
        self._notice_all(troubles or (tr("Finished checking all models for updates."),))

    async def _fix(self, path: str, fix: FindingFix) -> None:
        match await self._services.fixes.apply(self._services.library.find(path), fix):
            case FixStarted(sentence=sentence) | FixDone(sentence=sentence):
                self.noticed.emit(sentence)
            case FixToAgree(deletion=deletion):
                self.deletion_asked.emit(deletion, "")
            case FixToChoose(search=search):
                self._navigation.model_search_asked.emit(search)

    async def _ask_to_delete(self, path: str) -> None:
        outcome = self._services.library.deletion_of(self._services.library.find(path))
        if isinstance(outcome, DeletionFailure):
            self.noticed.emit(outcome.sentence)
        else:
            self.deletion_asked.emit(outcome, "")

    async def _delete(self, deletion: ModelDeletion, *, permanently: bool) -> None:
        outcome = await self._services.library.delete(deletion, permanently=permanently)
        if not isinstance(outcome, DeletionFailure):
            name = deletion.name
            self.noticed.emit(
                tr("{0} was moved to the trash.", name) if outcome.in_trash else tr("{0} was deleted.", name)
            )
        elif outcome.trash_failed:
            self.deletion_asked.emit(deletion, outcome.sentence)
        else:
            self.noticed.emit(outcome.sentence)

    async def _move(self, path: str, folder: Path, how: How) -> None:
        model = self._services.library.find(path)
        outcome = await self._services.moves.move(model, folder, how)
        if not isinstance(outcome, NotImported):
            text = tr("{0} is now in {1}.", model.name, folder)
            left = join_list(outcome.left_behind)
            self.noticed.emit(join_sentences(text, tr("The originals couldn't be deleted: {0}.", left) if left else ""))
        elif not outcome.cancelled:
            self.noticed.emit(outcome.sentence)

    def _notice_all(self, sentences: tuple[str, ...]) -> None:
        if sentences:
            self.noticed.emit(join_sentences(*dict.fromkeys(sentences)))

    def _start(self, action: Coroutine[Any, Any, object]) -> None:
        self._tasks.start(self._run(action))

    async def _run(self, action: Coroutine[Any, Any, object]) -> None:
        try:
            await action
        except QwenDeskError as error:
            self.noticed.emit(error.sentence)


def ask_deletion(actions: ModelActions, deletion: ModelDeletion, parent: QWidget, *, trash_refused: str = "") -> None:
    """Ask the user to confirm a deletion. Both Enter and Esc mean no.

    `trash_refused` is why the files can't be moved to the trash; the question is then whether to delete them
    permanently.
    """
    permanently = bool(trash_refused)
    question = tr("Permanently delete {0}?", deletion.name) if permanently else tr("Delete {0}?", deletion.name)
    sentence = deletion_text(deletion, permanently=permanently)
    delete = tr("Delete permanently") if permanently else tr("Move to trash")
    answers = (
        DialogButton("yes", delete, lambda: actions.delete(deletion, permanently=permanently)),
        DialogButton("no", tr("Keep")),
    )
    consequence = join_sentences(trash_refused, sentence)
    QuestionDialog(parent, "models.delete", question, consequence, answers, default="no").open()
