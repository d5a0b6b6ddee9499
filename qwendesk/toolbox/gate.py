"""Whether a call may run without asking. Pure rules; docs/adr/018-consent.md says why they are as they are."""

import hashlib
import json
from collections.abc import Sequence

import msgspec

from qwendesk.core.tool_context import CallContext, Decision
from qwendesk.toolbox.tool import Tool


class Grant(msgspec.Struct, frozen=True):
    """A consent that lasts: for one tool as it was then, in one chat or in one folder."""

    tool: str
    """`fingerprint` of the tool: when it changes, the consent ends."""
    chat_id: str = ""
    folder: str = ""


def fingerprint(tool: Tool) -> str:
    """Return a hash of all that the model is told about a tool."""
    told = json.dumps(tool.definition, sort_keys=True, ensure_ascii=False)
    return hashlib.sha256(told.encode()).hexdigest()


def may_run(tool: Tool, context: CallContext, grants: Sequence[Grant]) -> bool:
    """Return whether a call of `tool` runs without asking.

    What has no effect, and what only reads in folders that the user picked for this chat, runs. All else asks, unless
    the user has allowed it for longer; and it asks each time once the model has read anything that the user did not
    type, whatever was allowed before.
    """
    if tool.effect in ("nothing", "reads"):
        return True
    if context.is_tainted:
        return False
    return any(_covers(grant, tool, context) for grant in grants)


def choices(tool: Tool, context: CallContext) -> tuple[Decision, ...]:
    """Return what the user may decide about a call that asks."""
    if context.is_tainted:
        return ("once", "refuse")
    lasting: tuple[Decision, ...] = ("once", "chat", "always", "refuse")
    is_in_folder = tool.effect == "writes" and len(context.settings.tool_folders) == 1
    return lasting if is_in_folder and not context.is_incognito else ("once", "chat", "refuse")


def grant_for(decision: Decision, tool: Tool, context: CallContext) -> Grant | None:
    """Return the consent that a decision leaves; None if it counts for one call only."""
    if decision == "chat":
        return Grant(fingerprint(tool), chat_id=context.chat_id)
    if decision == "always":
        return Grant(fingerprint(tool), folder=context.settings.tool_folders[0])
    return None


def _covers(grant: Grant, tool: Tool, context: CallContext) -> bool:
    if grant.tool != fingerprint(tool):
        return False
    if grant.chat_id:
        return grant.chat_id == context.chat_id
    return context.settings.tool_folders == (grant.folder,)
