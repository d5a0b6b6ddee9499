"""All tool calls of a chat, in the order in which they ran, also those of versions that are not shown."""

import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from qwendesk.core.conversation import ChatTree
from qwendesk.core.errors import BadRequest
from qwendesk.core.files import reason_of, write_whole
from qwendesk.core.json_decoding import decode_json
from qwendesk.core.messages import CallRecord, ToolStep
from qwendesk.core.tool_context import ToolLook
from qwendesk.core.translation import tr


class LoggedCall(msgspec.Struct, frozen=True):
    record: CallRecord
    time_s: float
    """Start of the call, in seconds since 1970; of one that never ran, the start of its answer. 0 if unknown."""


def logged_calls(tree: ChatTree, running: Sequence[ToolStep] = ()) -> tuple[LoggedCall, ...]:
    """Return each call once, although versions of an answer that were edited have the same calls.

    `running` are the steps of an answer that is being generated, whose calls the tree doesn't have yet.
    """
    calls: dict[object, LoggedCall] = {}
    for node in tree.nodes.values():
        for step in node.message.steps:
            for record in step.calls:
                key: object = record.id or (node.id, len(calls))
                calls.setdefault(key, LoggedCall(record, record.began_s or node.created_s))
    for record in (record for step in running for record in step.calls if record.id):
        calls.setdefault(record.id, LoggedCall(record, record.began_s))
    return tuple(sorted(calls.values(), key=lambda call: call.time_s))


def moment_text(call: LoggedCall) -> str:
    """Return when a call ran, in local time; "" if unknown."""
    return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(call.time_s)) if call.time_s else ""


def consent_text(record: CallRecord) -> str:
    """Return how it came that a call ran, or that it didn't; "" if unknown."""
    match record.consent:
        case "unasked":
            return tr("Ran without asking")
        case "once":
            return tr("Allowed once")
        case "chat":
            return tr("Allowed in this chat")
        case "always":
            return tr("Always allowed in this folder")
        case "refused":
            return tr("Refused")
        case "":
            return ""


def log_text(calls: Sequence[LoggedCall], looks: Mapping[str, ToolLook]) -> str:
    """Return the calls as text, each with all of its arguments and its result."""
    return "\n\n".join(_call_text(call, looks) for call in calls)


def log_json(calls: Sequence[LoggedCall]) -> bytes:
    """Return the calls as a JSON array."""
    return msgspec.json.format(msgspec.json.encode([_call_values(call) for call in calls]), indent=1)


def write_log(path: Path, calls: Sequence[LoggedCall], looks: Mapping[str, ToolLook]) -> None:
    """Write the calls to a file: as text if its name ends in .txt, else as JSON. Blocks. Raises BadRequest."""
    is_text = path.suffix.lower() == ".txt"
    content = f"{log_text(calls, looks)}\n".encode() if is_text else log_json(calls)
    try:
        write_whole(path, content)
    except OSError as error:
        sentence = tr("Couldn't save {0}: {1}. Choose another location.", path, reason_of(error, path))
        raise BadRequest(tr("Not saved"), sentence) from error


def _call_text(call: LoggedCall, looks: Mapping[str, ToolLook]) -> str:
    record = call.record
    look = looks.get(record.call.name)
    name = f"{look.title} ({record.call.name})" if look is not None else record.call.name or tr("Unreadable call")
    head = "   ".join(filter(None, (moment_text(call), name, consent_text(record), f"{record.elapsed_s:.1f} s")))
    outcome = tr("Error: {0}", record.error) if record.error else record.result
    return "\n".join((head, record.call.arguments_json, outcome if record.is_done else tr("Interrupted")))


def _call_values(call: LoggedCall) -> dict[str, object]:
    record = call.record
    try:
        arguments: object = decode_json(record.call.arguments_json)
    except msgspec.DecodeError:
        arguments = record.call.arguments_json
    return {
        "time": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(call.time_s)) if call.time_s else None,
        "tool": record.call.name,
        "arguments": arguments,
        "consent": record.consent or None,
        "is_done": record.is_done,
        "result": record.result,
        "error": record.error or None,
        "elapsed_s": record.elapsed_s,
    }
