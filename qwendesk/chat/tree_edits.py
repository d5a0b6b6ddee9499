"""Edits of a chat's tree of messages: pure functions, except for the new ids and times.

An edit never changes a message; it adds another version.
"""

import time
import uuid
from collections.abc import Iterable

import msgspec

from qwendesk.core.conversation import ChatNode, ChatTree, answer_of
from qwendesk.core.errors import BadRequest
from qwendesk.core.messages import CallRecord, Message, text_message
from qwendesk.core.translation import tr


def new_id() -> str:
    """Return a unique id for a chat, message or folder: 32 hex digits."""
    return uuid.uuid4().hex


def new_question(parent_id: str, message: Message) -> ChatNode:
    return ChatNode(id=new_id(), parent_id=parent_id, message=message, created_s=time.time())


def new_answer(question_id: str) -> ChatNode:
    """Return an empty answer."""
    return ChatNode(id=new_id(), parent_id=question_id, message=text_message("assistant", ""), created_s=time.time())


def another_answer(tree: ChatTree, question_id: str, old_id: str) -> ChatNode:
    """Return an empty answer beside the answer `old_id` ("" for none), or in its place if that one is empty."""
    node, old = new_answer(question_id), tree.nodes.get(old_id)
    if old is not None and answer_of(old).is_empty and not tree.children(old_id):
        node = msgspec.structs.replace(node, id=old_id, created_s=old.created_s)
    return node


def reasoning_alone(old: ChatNode) -> ChatNode:
    """Return another version of an answer that has only its reasoning, to continue from there."""
    return msgspec.structs.replace(
        new_answer(old.parent_id),
        message=Message("assistant", reasoning=old.message.reasoning, steps=old.message.steps),
        stats=old.stats.of_reasoning,
        thought_s=old.thought_s,
    )


def up_to_call(old: ChatNode, number: int) -> ChatNode:
    """Return another version of an answer that ends with the step of a call, in which this call is not done.

    `number` counts the calls of all steps from 0. Other calls of the step keep their results. Raises BadRequest if
    there is no such call, or if it could not be read.
    """
    for index, step in enumerate(old.message.steps):
        if number < len(step.calls):
            call = step.calls[number].call
            if not call.name:
                break
            calls = (*step.calls[:number], CallRecord(call), *step.calls[number + 1 :])
            steps = (*old.message.steps[:index], msgspec.structs.replace(step, calls=calls))
            return msgspec.structs.replace(new_answer(old.parent_id), message=Message("assistant", steps=steps))
        number -= len(step.calls)
    raise BadRequest(tr("Can't try again"), tr("This call can't be run again. Regenerate the answer instead."))


def edited_answer(old: ChatNode, *, text: str, reasoning: str) -> ChatNode:
    """Return another version of an answer, written by the user.

    It has no statistics and no options, which distinguishes it from a generated answer. Its steps stay as they are.
    """
    written = text_message("assistant", text.strip("\r\n"), reasoning=reasoning.strip())
    return ChatNode(
        id=new_id(),
        parent_id=old.parent_id,
        message=msgspec.structs.replace(written, steps=old.message.steps),
        created_s=time.time(),
        stop_reason=old.stop_reason or "cancelled",
        model=old.model,
    )


def last_id(tree: ChatTree) -> str:
    """Return the id of the last shown message; "" in an empty chat."""
    path = tree.path()
    return path[-1].id if path else ""


def shown_up_to(tree: ChatTree, node_id: str) -> ChatTree:
    """Return the same chat, showing the versions of messages that lead to this message."""
    shown = dict(tree.shown)
    while node := tree.nodes.get(node_id):
        shown[node.parent_id] = node.id
        node_id = node.parent_id
    return ChatTree(tree.nodes, shown)


def copied_path(tree: ChatTree, until_id: str) -> ChatTree:
    """Return a new tree of the shown messages up to this one, with new ids.

    The copies are created now, so that the list of chats shows the new chat at the top.
    """
    copy, parent_id, now_s = ChatTree(), "", time.time()
    for node in tree.path():
        twin = msgspec.structs.replace(node, id=new_id(), parent_id=parent_id, created_s=now_s)
        copy, parent_id = copy.with_node(twin), twin.id
        if node.id == until_id:
            break
    return copy


def copied_tree(tree: ChatTree) -> ChatTree:
    """Return the same chat with new ids for all messages."""
    names = {"": ""} | {name: new_id() for name in tree.nodes}
    nodes: dict[str, ChatNode] = {}
    for node in tree.nodes.values():
        made = msgspec.structs.replace(node, id=names[node.id], parent_id=names.get(node.parent_id, ""))
        nodes[made.id] = made
    shown = {names[parent]: names[child] for parent, child in tree.shown.items() if parent in names and child in names}
    return ChatTree(nodes, shown)


def subtree(tree: ChatTree, node_id: str) -> tuple[ChatNode, ...]:
    """Return a message and everything below it, each message after its parent."""
    remaining = tree.without(node_id).nodes
    return tuple(_parents_first([node for node in tree.nodes.values() if node.id not in remaining]))


def restored(before: ChatTree, now: ChatTree, node_id: str) -> ChatTree:
    """Return `now` with all messages that were deleted since `before`, showing this message."""
    parent_id = before.nodes[node_id].parent_id
    return ChatTree({**before.nodes, **now.nodes}, {**before.shown, **now.shown, parent_id: node_id})


def _parents_first(nodes: list[ChatNode]) -> Iterable[ChatNode]:
    left = {node.id: node for node in nodes}
    while left:
        ready = [node for node in left.values() if node.parent_id not in left]
        for node in ready:
            del left[node.id]
        yield from ready
