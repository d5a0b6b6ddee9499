"""Which files of the user's folders tools may touch."""

import errno
import io
import os
import re
import stat
from collections.abc import Sequence
from itertools import chain, count
from pathlib import Path

from qwendesk.core.input_files import OnlineOnlyFile, is_online_only
from qwendesk.toolbox.contained_files import FolderEntry, list_contained, open_contained
from qwendesk.toolbox.shown_text import from_codes, on_one_line
from qwendesk.toolbox.tool import ToolError

_HIDDEN_OR_KEY = re.compile(
    r"""(?ix)
    ^\.                                    # hidden: .env, .ssh, .git
    | ^id_(rsa|dsa|ecdsa|ed25519)          # keys of SSH
    | \.(pem|key|p12|pfx|kdbx?|keystore|jks|ppk|asc|gpg|ovpn|env)(\.|$)
    | ^(known_hosts|authorized_keys|htpasswd|netrc|_netrc|pgpass|npmrc|pypirc|wp-config\.php)$
    | ^(logins\.json|key[34]\.db|cookies(\.sqlite)?)$
    """
)
_SECRET_WORD = re.compile(
    r"(?i)(?:^|[^a-z])(?:secrets?|credentials?|passwords?|passwd|shadow|wallet|service[-_ ]account|private[-_ ]?key)"
    r"(?:[^a-z]|$)|^tokens?\."
)
# In code, such a word names what the code is about.
_CODE = (
    ".py", ".js", ".ts", ".tsx", ".jsx", ".go", ".rs", ".java", ".kt", ".c", ".h", ".cpp", ".hpp", ".cs", ".rb", ".php",
    ".swift", ".html", ".css", ".sql",
)  # fmt: skip
_HIDDEN_ATTRIBUTES = getattr(stat, "FILE_ATTRIBUTE_HIDDEN", 0) | getattr(stat, "FILE_ATTRIBUTE_SYSTEM", 0)


class FolderAccess:
    """The folders that the user picked for one chat, and files that they picked by themselves."""

    def __init__(self, folders: Sequence[str]) -> None:
        self._folders = [Path(folder) for folder in folders]
        self._labels = _labels(self._folders)

    @property
    def folders(self) -> Sequence[Path]:
        """Raise ToolError if there is none."""
        if not self._folders:
            raise ToolError("The user has picked no folder for this chat. Ask them to pick one under Tools.")
        return self._folders

    @property
    def labels(self) -> Sequence[str]:
        """What the folders are called where there are several: their names, or with a number if two have the same."""
        return self._labels

    def find(self, name: str, *, must_exist: bool = True) -> Path:
        """Return the file or folder that a path names, with all symbolic links resolved.

        A path is relative to one of the folders, begins with the name of one, or is absolute. It may have the codes
        with which `shown` writes it. Raise ToolError for what lies outside of the folders, is hidden, or looks like a
        secret.
        """
        allowed = self._all_allowed(name)
        for path in [*allowed, *self._all_allowed(from_codes(name))]:
            if _exists(path):
                return path
        if not allowed:
            raise ToolError(f"{name} is not in a folder that the user picked, or it is hidden or looks like a secret.")
        if must_exist:
            raise ToolError(f"There is no {name}. List the files to see what there is.")
        return allowed[0]

    def shown(self, path: Path) -> str:
        """Return a path as the model and the user read it: below its folder, with its name if there are several.

        Bytes that are no text, line breaks and what can't be seen are codes: old file systems have such names.
        """
        for folder, label in zip(self._folders, self._labels, strict=True):
            root = _resolved(folder)
            if root is not None and path.is_relative_to(root):
                relative = on_one_line(path.relative_to(root).as_posix())
                if relative == ".":  # a file that was picked by itself, or the folder
                    return label
                return f"{label}/{relative}" if len(self._folders) > 1 else relative
        return on_one_line(path.name)

    def may_see(self, path: Path) -> bool:
        """Return whether a file or folder that was found in a folder may be listed."""
        return self._find_root(path) is not None

    def open(self, path: Path, limit_bytes: int | None = None) -> io.FileIO:
        """Open a file that tools may see for reading, whatever links are made meanwhile.

        Raise PermissionError for what tools may not see, OnlineOnlyFile, and OSError.
        """
        root, resolved = self._checked(path)
        if is_online_only(resolved.lstat()):
            raise OnlineOnlyFile(resolved)
        return open_contained(root, resolved, limit_bytes)

    def entries(self, folder: Path) -> list[FolderEntry]:
        """Return the entries of a folder that tools may see, hidden ones too. Raise OSError as `open` does."""
        return list_contained(*self._checked(folder))

    def root_of(self, path: Path) -> Path:
        """Return which folder of the user a path lies in, resolved. Raise PermissionError."""
        return self._checked(path)[0]

    def _checked(self, path: Path) -> tuple[Path, Path]:
        found = self._find_root(path)
        if found is None:
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))
        return found

    def _candidates(self, name: str) -> list[Path]:
        """Return where a path may lead, without touching the disk.

        Resolving \\\\server\\share on Windows would tell the server who the user is, so a path that does not begin with
        one of the folders, or has a drive or a stream of its own, is none.
        """
        wanted = Path(name)
        if wanted.is_absolute():
            inside = Path(os.path.normpath(wanted))
            return [inside] if any(inside.is_relative_to(os.path.normpath(folder)) for folder in self.folders) else []
        if wanted.drive or wanted.root or (os.name == "nt" and ":" in name) or "\0" in name:
            return []
        labelled, first = zip(self.folders, self._labels, strict=True), (wanted.parts or ("",))[0]
        named = [folder.joinpath(*wanted.parts[1:]) for folder, label in labelled if label == first]
        below = [folder / wanted for folder in self.folders]
        return [*named, *below] if len(self.folders) > 1 else [*below, *named]

    def _all_allowed(self, name: str) -> list[Path]:
        """Return where a path may lead that tools may see, even if there is nothing."""
        return [path for each in self._candidates(name.strip() or ".") if (path := self._allowed(each)) is not None]

    def _allowed(self, path: Path) -> Path | None:
        found = self._find_root(path)
        return None if found is None else found[1]

    def _find_root(self, path: Path) -> tuple[Path, Path] | None:
        """Return the folder that a path is in, and the path, both resolved; None if tools may not see it."""
        resolved = _resolved(path)
        for folder in self.folders:
            root = _resolved(folder)
            if resolved is not None and root is not None and resolved.is_relative_to(root):
                parts = resolved.relative_to(root).parts
                if not any(map(is_secret, parts)) and not _is_hidden(root, parts):
                    return root, resolved
        return None


def _labels(folders: Sequence[Path]) -> list[str]:
    labels: list[str] = []
    for folder in folders:
        name = on_one_line(folder.name or folder.anchor.strip("/\\:") or "folder")
        numbered = (f"{name} ({number})" for number in count(2))
        labels.append(next(each for each in chain((name,), numbered) if each not in labels))
    return labels


def is_secret(name: str) -> bool:
    """Return whether a name is hidden on Unix, or is one that keys, passwords and the like have.

    Such files are refused, not only asked about.
    """
    return bool(_HIDDEN_OR_KEY.search(name) or (Path(name).suffix.lower() not in _CODE and _SECRET_WORD.search(name)))


def _is_hidden(root: Path, parts: Sequence[str]) -> bool:
    """Return whether one of the `parts` below `root` is hidden by an attribute, as on Windows and macOS."""
    if not _HIDDEN_ATTRIBUTES and not hasattr(stat, "UF_HIDDEN"):
        return False
    for part in parts:
        root /= part
        try:
            state = root.lstat()
        except (OSError, ValueError):
            return False  # nothing that exists
        if has_hidden_attribute(state):
            return True
    return False


def has_hidden_attribute(state: os.stat_result) -> bool:
    """Return whether a file is hidden by an attribute, as on Windows and macOS."""
    flags = getattr(state, "st_flags", 0) & getattr(stat, "UF_HIDDEN", 0)
    return bool(flags or getattr(state, "st_file_attributes", 0) & _HIDDEN_ATTRIBUTES)


def _exists(path: Path) -> bool:
    try:
        return path.exists()
    except (OSError, ValueError):  # such as a name that is too long
        return False


def _resolved(path: Path) -> Path | None:
    try:
        resolved = path.resolve()
    except (OSError, RuntimeError, ValueError):  # a loop of links, a null character
        return None
    try:
        return None if resolved.is_symlink() else resolved  # from Python 3.13 on such a loop raises nothing
    except OSError:  # a name that is too long, which is no link
        return resolved
