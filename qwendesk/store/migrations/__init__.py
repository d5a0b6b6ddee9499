"""How the database grew, one numbered step per release that changed it.

Append only: a step that was released is never edited, because databases that it made are out there. Step N leads from
version N - 1 to version N, which SQLite keeps as `user_version`; 0 is an empty file.
"""

import sqlite3
from collections.abc import Callable

from qwendesk.store.migrations import m001_first, m002_documents

Migration = Callable[[sqlite3.Connection], None]

MIGRATIONS: tuple[Migration, ...] = (m001_first.apply, m002_documents.apply)
