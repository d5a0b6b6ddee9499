"""The check for a newer QwenDesk: what an answer may be, when it is asked for, and what is never done."""

import datetime
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import msgspec
import pytest
import pytest_asyncio

from qwendesk import __version__
from qwendesk.help.app_updates import AppUpdates, Release, fetch_release, is_newer, read_release
from qwendesk.hub.network import HubError, Network, offline_error
from qwendesk.settings.service import SettingsService
from tests.fakes.waits import Waits
from tests.help.release_page import PATH, answer, content
from tests.hub.conftest import fake_hub
from tests.hub.hub_server import FakeHub

__all__ = ["fake_hub"]
NOW = datetime.datetime(2026, 12, 20, 12, 0, tzinfo=datetime.UTC)
DAY = datetime.timedelta(days=1)
NEXT = Release("99.1.0", datetime.date(2026, 12, 19), "- Faster.\n- Fewer faults.")


@pytest.mark.parametrize(
    ("offered", "own", "is_it"),
    [
        ("0.10.0", "0.9.1", True),
        ("0.2", "0.1.0", True),
        ("1.0.0", "1.0.0rc2", True),
        ("0.1.0", "0.1.0", False),
        ("0.1", "0.1.0", False),
        ("0.0.9", "0.1.0", False),
        ("0.2.0rc1", "0.1.0", False),
        ("0.2.0.dev3", "0.1.0", False),
        ("newest", "0.1.0", False),
        ("", "0.1.0", False),
    ],
)
def test_which_version_is_newer(offered: str, own: str, is_it: bool) -> None:
    assert is_newer(offered, own) is is_it


@pytest.mark.parametrize(
    "bad",
    [
        b"",
        b"{",
        b"<html><body>Log in to the network of Hotel Krone</body></html>",
        b"[]",
        b'{"version": 2, "date": "2026-12-19"}',
        content(version="newest"),
        content(version="1." + "9" * 5_000),
        content(date="yesterday"),
        content(notes=["a", "b"]),
        content(files=[{"name": "a.deb", "n_bytes": -1, "sha256": "0" * 64}]),
        content(files=[{"name": "a.deb", "n_bytes": 1, "sha256": "short"}]),
        b"[" * 100_000,
        content(notes="a" * 2 * 1024**2),
    ],
    ids=lambda bad: bad[:40].decode(),
)
def test_what_describes_no_release_is_refused(bad: bytes) -> None:
    with pytest.raises(msgspec.DecodeError):
        read_release(bad)


def test_fields_of_later_versions_are_ignored() -> None:
    assert read_release(content(channel="stable")).version == "99.1.0"


def asked(hub: FakeHub) -> Release:
    return fetch_release(Network(token="secret", stall_s=10), f"{hub.endpoint}/releases")


def test_newest_release_is_read_over_http_without_the_token(fake_hub: FakeHub) -> None:
    answer(fake_hub, content())

    assert asked(fake_hub).version == "99.1.0"

    (_, path, headers), *others = fake_hub.seen
    assert path.endswith(PATH)
    assert not others
    assert "secret" not in str(headers)


def test_redirect_to_the_file_is_followed(fake_hub: FakeHub) -> None:
    there = "/releases/download/v99.1.0/latest.json"
    answer(fake_hub, b"", 302, Location=f"{fake_hub.endpoint}{there}")
    answer(fake_hub, content(), path=there)

    assert asked(fake_hub).version == "99.1.0"


@pytest.mark.parametrize(
    ("status", "body", "kind", "said"),
    [
        (404, b"Not Found", "not_found", "has no release of QwenDesk"),
        (200, b"<html>Log in</html>", "bad_answer", "no description of a release"),
        (204, b"", "bad_answer", "status 204"),
        (403, b"", "denied", "denied access"),
        (503, b"", "busy", "has a problem right now"),
        (200, b" " * 17 * 1024**2, "bad_answer", "an answer without an end"),
    ],
)
def test_other_answers_have_a_sentence(fake_hub: FakeHub, status: int, body: bytes, kind: str, said: str) -> None:
    answer(fake_hub, body, status)

    with pytest.raises(HubError) as caught:
        asked(fake_hub)

    assert caught.value.kind == kind
    assert said in caught.value.sentence


def test_no_server_has_a_sentence(fake_hub: FakeHub) -> None:
    with pytest.raises(HubError) as caught:
        fetch_release(Network(), "http://127.0.0.1:9/releases")
    assert caught.value.kind == "no_connection"


class Desk:
    """The service with a clock and an internet of its own."""

    def __init__(self, folder: Path) -> None:
        self.settings = SettingsService(folder / "settings.json")
        self.now, self.n_asked = NOW, 0
        self.answer: Release | HubError = NEXT
        self.on_asked: Callable[[], None] = lambda: None
        self.folder = folder
        self.waits = Waits()
        self.updates = self.make()

    def make(self) -> AppUpdates:
        return AppUpdates(
            "https://example.invalid/releases", self.settings.state, Network, fetch=self._fetch, folder=self.folder,
            now=lambda: self.now, wait=self.waits.wait,
        )  # fmt: skip

    def _fetch(self, _network: Network, _releases: str, is_cut: Callable[[], bool]) -> Release:
        self.n_asked += 1
        self.on_asked()
        if is_cut():
            raise offline_error()
        if isinstance(self.answer, HubError):
            raise self.answer
        return self.answer

    async def hour_passes(self) -> None:
        """Let the schedule decide once."""
        self.updates.start()
        await self.waits.end()
        await self.updates.wait_until_settled()

    async def check(self) -> None:
        self.updates.check()
        await self.updates.wait_until_settled()


@pytest_asyncio.fixture
async def desk(tmp_path: Path) -> AsyncIterator[Desk]:
    desk = Desk(tmp_path)
    yield desk
    await desk.updates.close()


async def test_button_finds_a_newer_version_and_it_is_saved(desk: Desk) -> None:
    await desk.check()

    state = desk.updates.state.value
    assert (state.newer, state.done, state.problem) == (NEXT, NOW, "")
    assert state.announced == NEXT.version, "whoever asked sees it in the settings, and needs no notice"
    assert (desk.folder / "app-updates.json").is_file()


@pytest.mark.parametrize("version", [__version__, "0.0.1", "99.1.0rc1", "99.1.0.dev1"])
async def test_older_versions_and_previews_are_not_offered(desk: Desk, version: str) -> None:
    desk.answer = msgspec.structs.replace(NEXT, version=version)

    await desk.check()

    assert (desk.updates.state.value.newer, desk.updates.state.value.done) == (None, NOW)


async def test_weekly_check_needs_the_permission_for_look_ups(desk: Desk) -> None:
    await desk.hour_passes()
    assert (desk.n_asked, desk.waits.seconds) == (0, [60.0, 3600.0])

    desk.settings.change({"look_up_weekly": True})
    await desk.hour_passes()
    assert (desk.n_asked, desk.updates.state.value.announced) == (1, "")

    desk.now += 6 * DAY
    await desk.hour_passes()
    assert desk.n_asked == 1
    desk.now += 2 * DAY
    await desk.hour_passes()
    assert desk.n_asked == 2


@pytest.mark.parametrize("forbidden", ["offline", "metered"])
async def test_nothing_is_asked_offline_or_on_a_metered_connection(desk: Desk, forbidden: str) -> None:
    desk.settings.change({"look_up_weekly": True, "offline": forbidden == "offline"})
    desk.updates.set_metered(forbidden == "metered")

    await desk.hour_passes()

    assert desk.n_asked == 0


async def test_permission_that_is_taken_back_drops_the_answer(desk: Desk) -> None:
    desk.settings.change({"look_up_weekly": True})
    desk.on_asked = lambda: desk.settings.change({"look_up_weekly": False})

    await desk.hour_passes()

    assert (desk.n_asked, desk.updates.state.value.newer) == (1, None)
    assert not (desk.folder / "app-updates.json").exists()


async def test_failure_is_said_and_tried_again_after_a_day(desk: Desk) -> None:
    desk.settings.change({"look_up_weekly": True})
    desk.answer = HubError("not_found", "Not found", "It has no release.")

    await desk.hour_passes()
    await desk.hour_passes()
    assert (desk.n_asked, desk.updates.state.value.problem) == (1, "It has no release.")

    desk.now += DAY
    desk.answer = NEXT
    await desk.hour_passes()
    assert (desk.updates.state.value.newer, desk.updates.state.value.problem) == (NEXT, "")


async def test_failure_keeps_the_version_that_is_known(desk: Desk) -> None:
    await desk.check()
    desk.answer = HubError("busy", "Server busy", "Try again later.")
    await desk.check()
    assert (desk.updates.state.value.newer, desk.updates.state.value.problem) == (NEXT, "Try again later.")


async def test_after_a_restart_the_newer_version_is_known_until_it_is_installed(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    await desk.check()
    await desk.updates.close()
    desk.updates = desk.make()
    await desk.hour_passes()
    assert desk.updates.state.value.newer == NEXT

    await desk.updates.close()
    monkeypatch.setattr("qwendesk.help.app_updates.is_newer", lambda version: is_newer(version, NEXT.version))
    desk.waits = Waits()
    desk.updates = desk.make()
    await desk.hour_passes()
    assert desk.updates.state.value.newer is None
    assert desk.n_asked == 1


async def test_notes_are_shown_as_a_few_short_lines(desk: Desk) -> None:
    long = f"<b>Bold</b> \x1b[31m\u202e{'x' * 5_000}\n" + "\n".join(f"line {number}" for number in range(5_000))
    desk.answer = msgspec.structs.replace(NEXT, notes=long)

    await desk.check()

    newer = desk.updates.state.value.newer
    assert newer is not None
    first, *others = newer.notes.splitlines()
    assert first.startswith("<b>Bold</b>")
    assert max(len(word) for word in first.split()) <= 40
    assert first.isprintable()
    assert (len(others), others[-1]) == (12, "…")
