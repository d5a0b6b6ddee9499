"""Newer versions of QwenDesk: what its page of releases says, when the user asks or once a week.

Nothing is downloaded or installed: the page of the release opens in the browser.
"""

import asyncio
import datetime
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Annotated, Any

import msgspec
from packaging.version import InvalidVersion, Version

from qwendesk import __version__
from qwendesk.core import paths
from qwendesk.core.app_options import AppOptions
from qwendesk.core.json_decoding import decode_json
from qwendesk.core.json_file import JsonFile
from qwendesk.core.observed import Observed
from qwendesk.core.translation import tr
from qwendesk.core.weekly import is_due, repeat_hourly
from qwendesk.hub.network import HubError, Network, bad_answer_error, never_cut, no_connection_error, status_error

_MOST_BYTES = 1024**2
# Of the notes that are shown, in lines and characters. The page of the release has all of them.
_MOST_LINES, _LONGEST_LINE, _LONGEST_WORD = 12, 300, 40
# How long closing waits for the answer to a running request.
_CLOSING_S = 5.0
_Time = Annotated[datetime.datetime, msgspec.Meta(tz=True)]


class ReleaseFile(msgspec.Struct, frozen=True):
    """A file that users download."""

    name: str
    n_bytes: Annotated[int, msgspec.Meta(ge=0)]
    sha256: Annotated[str, msgspec.Meta(pattern="^[0-9a-f]{64}$")]


class Release(msgspec.Struct, frozen=True):
    """The content of latest.json."""

    version: Annotated[str, msgspec.Meta(max_length=40)]
    date: datetime.date
    notes: str = ""
    """Changes of the release, as plain text."""
    files: tuple[ReleaseFile, ...] = ()


class UpdateState(msgspec.Struct, frozen=True):
    """The newest known version and the state of the check. Saved, but for the last two fields."""

    newer: Release | None = None
    """The newest release, if it is newer than this version."""
    done: _Time | None = None
    """The last time that a check succeeded."""
    tried: _Time | None = None
    """The last time, whether it succeeded or not."""
    problem: str = ""
    """Reason why it failed that time, in a sentence; "" if it succeeded."""
    announced: str = ""
    """The version that the user has been told about."""
    is_checking: bool = False
    is_offline: bool = False


def latest_json(releases: str) -> str:
    """Return the address of the file that describes the newest release (tools/release.py writes it)."""
    return f"{releases}/latest/download/latest.json"


def latest_page(releases: str) -> str:
    """Return the address of the newest release's page, for a browser."""
    return f"{releases}/latest"


def read_release(content: bytes) -> Release:
    """Return the release that `content` (latest.json) describes. Raises msgspec.DecodeError."""
    if len(content) > _MOST_BYTES:
        raise msgspec.DecodeError("it is too large")
    release = decode_json(content, Release)
    try:
        Version(release.version)
    except InvalidVersion as error:
        raise msgspec.DecodeError(str(error)) from error
    return release


def is_newer(version: str, than: str = __version__) -> bool:
    """Return whether `version` is a newer release; False for a pre-release and for what is no version."""
    try:
        offered = Version(version)
    except InvalidVersion:
        return False
    return offered > Version(than) and not offered.is_prerelease


def fetch_release(network: Network, releases: str, is_cut: Callable[[], bool] = never_cut) -> Release:
    """Ask the page of releases for the newest one. Blocks. Raises HubError.

    `is_cut` returns True once no request is allowed any more; the answer to a running one is then dropped.
    """
    import httpx2

    from qwendesk.hub.http_client import QuestionClient, new_client

    network = msgspec.structs.replace(network, endpoint=releases, token="")
    try:
        with new_client(network, is_cut, QuestionClient) as client:
            answer = client.get(latest_json(releases))
        if answer.status_code in (404, 410):
            sentence = tr("{0} has no release of QwenDesk.", network.host)
            raise HubError("not_found", tr("Not found"), sentence)
        if answer.status_code != httpx2.codes.OK:
            raise status_error(answer, network, "QwenDesk")
        return read_release(answer.content)
    except httpx2.TransportError as error:
        raise no_connection_error(network, error) from error
    except (httpx2.HTTPError, httpx2.InvalidURL) as error:
        raise bad_answer_error(network.host, str(error)) from error
    except msgspec.DecodeError as error:
        # A captive portal answers with a page of its own.
        raise bad_answer_error(network.host, tr("no description of a release")) from error


class AppUpdates:
    """Owns the check for newer versions. Call its methods on the event loop's thread; it asks on another."""

    def __init__(
        self,
        releases: str,
        options: Observed[AppOptions],
        network: Callable[[], Network],
        *,
        fetch: Callable[[Network, str, Callable[[], bool]], Release] = fetch_release,
        folder: Path | None = None,
        now: Callable[[], datetime.datetime] = lambda: datetime.datetime.now(datetime.UTC),
        wait: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        """`releases` is the address of the page of releases. `network` returns the current connection settings."""
        self.releases = releases
        self._options, self._network, self._fetch, self._now, self._wait = options, network, fetch, now, wait
        folder = folder or paths.data_folder()
        self._file = JsonFile(folder / "app-updates.json", UpdateState, UpdateState, keep_unusable=False)
        self.state = Observed(UpdateState(is_offline=options.value.offline))
        self._is_metered = self._is_automatic = self._is_closing = False
        self._schedule: asyncio.Task[None] | None = None
        self._check: asyncio.Task[None] | None = None
        self._unsubscribe = options.subscribe(lambda now: self.state.update(is_offline=now.offline))

    def start(self) -> None:
        """Read what the last check found, and from now on check once a week if the user has allowed look-ups."""
        if self._schedule is None:
            self._schedule = asyncio.get_running_loop().create_task(self._keep_current())

    def set_metered(self, is_metered: bool) -> None:
        """Set whether the connection is metered. Nothing is checked automatically on such a connection."""
        self._is_metered = is_metered

    def check(self) -> None:
        """Begin to ask for the newest version, unless that is running or the app is offline."""
        self._begin(is_automatic=False)

    def mark_announced(self) -> None:
        """Remember that the user has been told about the newer version."""
        if self.state.value.newer is not None:
            self._save(announced=self.state.value.newer.version)

    async def wait_until_settled(self) -> None:
        """Return when no check is running."""
        while self._check is not None:
            await asyncio.wait([self._check])

    async def close(self) -> None:
        """Stop, and wait for the answer to a running request, but no more than 5 s. It isn't saved."""
        self._is_closing = True
        self._unsubscribe()
        if self._schedule is not None:
            self._schedule.cancel()
            await asyncio.wait([self._schedule])
        if self._check is not None:
            await asyncio.wait([self._check], timeout=_CLOSING_S)

    async def _keep_current(self) -> None:
        saved = await asyncio.to_thread(self._file.read)
        # This version may have been installed since.
        newer = saved.newer if saved.newer is not None and is_newer(saved.newer.version) else None
        self.state.set(msgspec.structs.replace(saved, newer=newer, is_offline=self._options.value.offline))
        await repeat_hourly(self._begin_if_due, self._wait)

    def _begin_if_due(self) -> None:
        options, state = self._options.value, self.state.value
        if options.look_up_weekly and not self._is_metered and is_due(self._now(), state.done, state.tried):
            self._begin(is_automatic=True)

    def _begin(self, *, is_automatic: bool) -> None:
        if self._check is None and not self._is_closing and not self._options.value.offline:
            self._is_automatic = is_automatic
            self.state.update(is_checking=True)
            self._check = asyncio.get_running_loop().create_task(self._run())

    def _is_cut(self) -> bool:
        options = self._options.value
        is_refused = self._is_automatic and (self._is_metered or not options.look_up_weekly)
        return self._is_closing or options.offline or is_refused

    async def _run(self) -> None:
        try:
            release = await asyncio.to_thread(self._fetch, self._network(), self.releases, self._is_cut)
            newer = _to_show(release) if is_newer(release.version) else None
            found: dict[str, Any] = {"newer": newer, "done": self._now(), "tried": self._now(), "problem": ""}
            if newer is not None and not self._is_automatic:
                found["announced"] = newer.version  # the settings, where it was asked for, show it
        except HubError as error:
            found = {"tried": self._now(), "problem": error.sentence}
        finally:
            self._check = None
            self.state.update(is_checking=False)
        if not self._is_cut():
            self._save(**found)

    def _save(self, **changes: Any) -> None:
        self.state.update(**changes)
        self._file.try_write(msgspec.structs.replace(self.state.value, is_checking=False, is_offline=False))


def _to_show(release: Release) -> Release:
    """Return the release with notes that fit into a few lines of a window."""
    lines = [_short_line(line) for line in release.notes.splitlines()]
    kept = lines[:_MOST_LINES] + (["…"] if len(lines) > _MOST_LINES else [])
    return msgspec.structs.replace(release, notes="\n".join(kept).strip(), files=())


def _short_line(line: str) -> str:
    shown = "".join(character if character.isprintable() else " " for character in line)
    words = [_cut(word, _LONGEST_WORD) for word in shown.rstrip().split(" ")]  # a longer word would widen the window
    return _cut(" ".join(words), _LONGEST_LINE)


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most - 1]}…"
