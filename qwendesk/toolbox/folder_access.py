"""Which files of the user's folders tools may touch."""

import re
from collections.abc import Sequence
from pathlib import Path

from qwendesk.toolbox.tool import ToolError

_SECRET = re.compile(
    r"""(?ix)
    ^\.                                     # hidden: .env, .ssh, .git
    | ^id_(rsa|dsa|ecdsa|ed25519)           # keys of SSH
    | \.(pem|key|p12|pfx|kdbx?|keystore|jks|ppk|asc|gpg|ovpn)$
    | ^(credentials?|secrets?|passwords?|passwd|shadow|tokens?|wallet)(\.(txt|json|ya?ml|ini|cfg|conf|toml|csv|xml))?$
    | ^(known_hosts|authorized_keys|htpasswd|netrc|_netrc|pgpass|npmrc|pypirc)$
    | ^(logins\.json|key[34]\.db|cookies(\.sqlite)?)$
    """
)
"""Names of files and folders that hidden and secret things have. Such files are refused, not only asked about."""


class FolderAccess:
    """The folders that the user picked for one chat."""

    def __init__(self, folders: Sequence[str]) -> None:
        self._folders = [Path(folder) for folder in folders]

    @property
    def folders(self) -> Sequence[Path]:
        """Raise ToolError if there is none."""
        if not self._folders:
            raise ToolError("The user has picked no folder for this chat. Ask them to pick one under Tools.")
        return self._folders

    def find(self, name: str, *, must_exist: bool = True) -> Path:
        """Return the file or folder that a path names, with all symbolic links resolved.

        A path is absolute, or relative to one of the folders, or begins with the name of one. Raise ToolError for what
        lies outside of the folders, is hidden, or looks like a secret.
        """
        wanted = Path(name.strip() or ".").expanduser()
        candidates = [wanted] if wanted.is_absolute() else [folder / wanted for folder in self.folders]
        if not wanted.is_absolute() and wanted.parts:
            named = [folder for folder in self.folders if folder.name == wanted.parts[0]]
            candidates += [folder.joinpath(*wanted.parts[1:]) for folder in named]
        allowed = [path for each in candidates if (path := self._allowed(each)) is not None]
        if not allowed:
            raise ToolError(f"{name} is not in a folder that the user picked, or it is hidden or looks like a secret.")
        for path in allowed:
            if path.exists():
                return path
        if must_exist:
            raise ToolError(f"There is no {name}. List the files to see what there is.")
        return allowed[0]

    def shown(self, path: Path) -> str:
        """Return a path as the model and the user read it: below its folder, with its name if there are several."""
        for folder in self._folders:
            root = _resolved(folder)
            if root is not None and path.is_relative_to(root):
                relative = path.relative_to(root).as_posix()
                return f"{folder.name}/{relative}" if len(self._folders) > 1 else relative
        return path.name

    def may_see(self, path: Path) -> bool:
        """Return whether a file or folder that was found in a folder may be listed."""
        return self._allowed(path) is not None

    def _allowed(self, path: Path) -> Path | None:
        resolved = _resolved(path)
        for folder in self.folders:
            root = _resolved(folder)
            if resolved is None or root is None or not resolved.is_relative_to(root):
                continue
            if not any(_SECRET.search(part) for part in resolved.relative_to(root).parts):
                return resolved
        return None


def _resolved(path: Path) -> Path | None:
    try:
        return path.resolve()
    except (OSError, RuntimeError, ValueError):  # a loop of links, a null character
        return None
