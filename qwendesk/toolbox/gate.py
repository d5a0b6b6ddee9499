"""Whether a call may run without asking. Pure rules; docs/adr/018-consent.md says why they are as they are."""

import hashlib
import json
from collections.abc import Sequence

import msgspec

from qwendesk.core.messages import Consent
from qwendesk.core.tool_context import CallContext, Decision
from qwendesk.toolbox.tool import Tool


class Grant(msgspec.Struct, frozen=True):
    """A consent that lasts: for one tool as it was then, in one chat or in one folder."""

    tool: str
    """`fingerprint` of the tool: when it changes, the consent ends."""
    chat_id: str = ""
    folder: str = ""
    name: str = ""
    """The tool's name, for showing the consent."""


def fingerprint(tool: Tool) -> str:
    """Return a hash of all that the model is told about a tool, and of who runs it."""
    told = json.dumps(
        [tool.provider, tool.definition] if tool.provider else tool.definition, sort_keys=True, ensure_ascii=False
    )
    return hashlib.sha256(told.encode()).hexdigest()


def allowed_by(tool: Tool, context: CallContext, grants: Sequence[Grant]) -> Consent:
    """Return why a call of `tool` runs without asking; "" if it asks.

    What has no effect, and what only reads in folders that the user picked for this chat, runs. All else asks, unless
    the user has allowed it for longer; and it asks each time once the model has read anything that the user did not
    type, whatever was allowed before. Some tools ask each time in every chat.
    """
    if tool.effect in ("nothing", "reads"):
        return "unasked"
    covering = next((grant for grant in grants if _covers(grant, tool, context)), None)
    if covering is None or context.is_tainted or tool.asks_each_time:
        return ""
    return "chat" if covering.chat_id else "always"


def choices(tool: Tool, context: CallContext) -> tuple[Decision, ...]:
    """Return what the user may decide about a call that asks."""
    if context.is_tainted or tool.asks_each_time:
        return ("once", "refuse")
    lasting: tuple[Decision, ...] = ("once", "chat", "always", "refuse")
    is_in_folder = tool.needs_folder and len(context.settings.tool_folders) == 1
    return lasting if is_in_folder and not context.is_incognito else ("once", "chat", "refuse")


def grant_for(decision: Decision, tool: Tool, context: CallContext) -> Grant | None:
    """Return the consent that a decision leaves; None if it counts for one call only."""
    if decision == "chat":
        return Grant(fingerprint(tool), chat_id=context.chat_id, name=tool.name)
    if decision == "always":
        return Grant(fingerprint(tool), folder=context.settings.tool_folders[0], name=tool.name)
    return None


def _covers(grant: Grant, tool: Tool, context: CallContext) -> bool:
    if grant.tool != fingerprint(tool):
        return False
    if grant.chat_id:
        return grant.chat_id == context.chat_id
    return context.settings.tool_folders == (grant.folder,)
