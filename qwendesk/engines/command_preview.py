"""A pasted command, applied to a model on this PC: its options, and the memory that they take."""

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

import msgspec

from qwendesk.core.errors import BadOption
from qwendesk.core.model_titles import ModelName
from qwendesk.core.option_rules import with_changes
from qwendesk.core.options import LoadOptions
from qwendesk.engines.pending_load import PendingLoad
from qwendesk.engines.pending_load_service import PendingLoadService

if TYPE_CHECKING:
    from qwendesk.commands.command_reader import ReadCommand

# Returns the load options of a model on this PC; None if it isn't there.
FindModel = Callable[[ModelName], Awaitable[LoadOptions | None]]

# Options that name files, which are others on this PC.
_OTHER_FILES = frozenset({"model", "mmproj", "draft_model", "chat_template_file"})


def load_changes(found: "ReadCommand") -> dict[str, Any]:
    """Return the load options to change. The files that the command names are not taken over."""
    return {key: value for key, value in found.load.items() if key not in _OTHER_FILES}


class CommandPreview(msgspec.Struct, frozen=True, kw_only=True):
    """A command on this PC."""

    target: LoadOptions | None = None
    """The model that it would be applied to, with its options until now; None if there is none."""
    is_named_model: bool = False
    """`target` is the model that the command names, not the one whose options are shown."""
    pending: PendingLoad | None = None
    """`target` with the options of the command, and the plan for it."""
    problem: str = ""
    """Reason why the options can't be applied, in a sentence."""


class CommandService:
    """Looks what a command would do, and does it. Call its methods on the event loop's thread."""

    def __init__(self, pending_load: PendingLoadService, find_model: FindModel) -> None:
        self._pending_load, self._find_model = pending_load, find_model

    async def preview(self, found: "ReadCommand") -> CommandPreview:
        """Return what the command would do, without doing it."""
        named = await self._find_model(found.model) if found.model is not None else None
        shown = self._pending_load.pending.requested
        target = shown if named is not None and shown is not None and shown.model == named.model else named or shown
        if target is None:
            return CommandPreview()
        try:
            options = with_changes(target, load_changes(found))
        except BadOption as error:
            return CommandPreview(target=target, is_named_model=named is not None, problem=error.sentence)
        pending = await self._pending_load.preview(options)
        return CommandPreview(target=target, is_named_model=named is not None, pending=pending)

    async def apply(self, found: "ReadCommand", target: LoadOptions) -> None:
        """Set the load options for `target`, which is loaded only if it already was. Raises BadOption."""
        await self._pending_load.prepare(target)
        self._pending_load.change(load_changes(found))
