"""Trees of messages made from others: pure functions."""

import uuid

import msgspec

from qwendesk.core.chat_tree import ChatNode, ChatTree


def new_id() -> str:
    """An id for a chat, a message or a folder: 32 hex digits."""
    return uuid.uuid4().hex


def leading_to(tree: ChatTree, node_id: str) -> ChatTree:
    """The same chat with this message on what is shown, whichever versions that takes."""
    while node := tree.nodes.get(node_id):
        tree = tree.showing(node.id)
        node_id = node.parent_id
    return tree


def copied(tree: ChatTree) -> ChatTree:
    """The same chat with new ids for all messages, so that it can stand beside the original."""
    names = {"": ""} | {name: new_id() for name in tree.nodes}
    nodes: dict[str, ChatNode] = {}
    for node in tree.nodes.values():
        made = msgspec.structs.replace(node, id=names[node.id], parent_id=names.get(node.parent_id, ""))
        nodes[made.id] = made
    shown = {names[parent]: names[child] for parent, child in tree.shown.items() if parent in names and child in names}
    return ChatTree(nodes, shown)
