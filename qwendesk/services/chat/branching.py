"""What edits make of a chat's tree: always another version beside the old one. Pure, but for the ids it makes."""

import time
import uuid
from collections.abc import Iterable

import msgspec

from qwendesk.core.chat_tree import ChatNode, ChatTree
from qwendesk.core.messages import Message, text_message


def new_id() -> str:
    """32 hex digits, unique everywhere."""
    return uuid.uuid4().hex


def new_question(parent_id: str, message: Message) -> ChatNode:
    return ChatNode(id=new_id(), parent_id=parent_id, message=message, created_s=time.time())


def new_answer(question_id: str) -> ChatNode:
    """An answer of which nothing is written yet."""
    return ChatNode(id=new_id(), parent_id=question_id, message=text_message("assistant", ""), created_s=time.time())


def edited_answer(old: ChatNode, *, text: str, reasoning: str) -> ChatNode:
    """Another version of an answer, written by hand: thought and answer stay apart whatever is typed in them.

    It has no numbers, and no options it was made with; that is what tells it from the model's own.
    """
    return ChatNode(
        id=new_id(),
        parent_id=old.parent_id,
        message=text_message("assistant", text.strip("\r\n"), reasoning=reasoning.strip()),
        created_s=time.time(),
        stop_reason=old.stop_reason or "cancelled",
        model=old.model,
    )


def last_id(tree: ChatTree) -> str:
    """The id of the last message that is shown; "" in an empty chat."""
    path = tree.path()
    return path[-1].id if path else ""


def copied_path(tree: ChatTree, until_id: str) -> ChatTree:
    """A tree of its own with what is shown up to this message, under new ids."""
    copy, parent_id = ChatTree(), ""
    for node in tree.path():
        twin = msgspec.structs.replace(node, id=new_id(), parent_id=parent_id)
        copy, parent_id = copy.with_node(twin), twin.id
        if node.id == until_id:
            break
    return copy


def below(tree: ChatTree, node_id: str) -> tuple[ChatNode, ...]:
    """A message and all that follows it in any version, each after its parent."""
    kept = tree.without(node_id).nodes
    gone = [node for node in tree.nodes.values() if node.id not in kept]
    return tuple(_parents_first(gone))


def restored(before: ChatTree, now: ChatTree, node_id: str) -> ChatTree:
    """`now` with what was deleted since `before` back in it, and this message shown again."""
    parent_id = before.nodes[node_id].parent_id
    return ChatTree({**before.nodes, **now.nodes}, {**before.shown, **now.shown, parent_id: node_id})


def _parents_first(nodes: list[ChatNode]) -> Iterable[ChatNode]:
    left = {node.id: node for node in nodes}
    while left:
        ready = [node for node in left.values() if node.parent_id not in left]
        for node in ready:
            del left[node.id]
        yield from ready
