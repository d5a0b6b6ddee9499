"""Messages to fill a store with."""

from qwendesk.core.conversation import ChatNode
from qwendesk.core.messages import text_message


def node(name: str, parent: str = "", role: str = "", text: str = "", **more) -> ChatNode:
    """A question if its name begins with q, an answer otherwise, with its name as text."""
    role = role or ("user" if name.startswith("q") else "assistant")
    return ChatNode(id=name, parent_id=parent, message=text_message(role, text or name), **more)
