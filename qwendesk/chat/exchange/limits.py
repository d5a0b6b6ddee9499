"""Limits of an import, so that a large file can't use up the memory."""

from qwendesk.core.units import GIB, MIB

MAX_FILE_BYTES = 1 * GIB
"""Size of the chats' JSON, unpacked. It is read in pieces, so this limits the time rather than the memory."""
MAX_CHAT_BYTES = 128 * MIB
MAX_MESSAGES = 200_000
"""Per chat."""
MAX_MESSAGE_BYTES = 64 * MIB
"""Per message in QwenDesk's own format, including its documents."""
MAX_FOREIGN_MESSAGE_BYTES = 8 * MIB
"""Per message in ChatGPT's format, which is decoded without a schema: a byte of JSON can take 30 bytes in memory."""
MAX_SMALL_VALUE_BYTES = MIB
"""Per small value, such as a title, a time or the settings of a chat."""
MAX_REASONING_CHARACTERS = 64 * MIB
"""Per chat. Each branch repeats the reasoning before it, so the total can be far larger than the file."""
MAX_PICTURE_BYTES = 128 * MIB
MAX_ARCHIVE_DIRECTORY_BYTES = 16 * MIB
"""Size of a ZIP's file list, which is read into memory as a whole. This is enough for 100,000 files."""
