"""All repositories of the catalog are asked, one after the other, on a Hub that a test scripts."""

import threading
from collections.abc import Mapping, Sequence

from qwendesk.hub.catalog_updates import LookUp, look_up
from qwendesk.hub.network import HubError
from qwendesk.hub.remote import RemoteFile

NO_HUB = HubError("bad_answer", "Unexpected answer", "It isn't the Hub's format.")
GONE = HubError("not_found", "Not found", "It is gone.")
OFF = HubError("no_connection", "No connection", "No connection to the Hub.")


class ScriptedHub:
    """Every repository has one file, except those that answer with an error."""

    def __init__(self, errors: Mapping[str, HubError]) -> None:
        self.errors = errors
        self.asked: list[str] = []

    def files_since(self, repo: str, revision: str) -> tuple[RemoteFile, ...]:
        self.asked.append(repo)
        if repo in self.errors:
            raise self.errors[repo]
        return (RemoteFile(repo, "model-Q8_0.gguf", "c1", 10, "1" * 64, "", ""),)


def ask(errors: Mapping[str, HubError], repos: Sequence[str] = "abcdef") -> tuple[LookUp, str]:
    """Return the result, and the repositories that were asked."""
    hub = ScriptedHub(errors)
    found = look_up(repos, {}, hub, "2026-11-24", threading.Event(), gap_s=0, on_progress=lambda _n: None)
    return found, "".join(hub.asked)


def test_repository_with_an_unexpected_answer_does_not_stop_the_others() -> None:
    found, asked = ask({"b": NO_HUB, "d": NO_HUB})
    assert asked == "abcdef"
    assert ("".join(found.answers), found.problem) == ("acef", "")


def test_second_unexpected_answer_in_a_row_ends_the_look_up() -> None:
    """The login page of a Wi-Fi answers in place of the Hub."""
    found, asked = ask({"a": NO_HUB, "c": NO_HUB, "d": NO_HUB})
    assert asked == "abcd"
    assert ("".join(found.answers), found.problem) == ("b", NO_HUB.sentence)


def test_unexpected_answers_with_another_one_between_do_not_end_it() -> None:
    found, asked = ask({"b": NO_HUB, "c": GONE, "d": NO_HUB})
    assert asked == "abcdef"
    assert found.problem == ""


def test_no_connection_ends_the_look_up_at_once() -> None:
    for errors in ({"b": OFF}, {"a": NO_HUB, "b": OFF}):
        found, asked = ask(errors)
        assert asked == "ab"
        assert found.problem == OFF.sentence


def test_only_unexpected_answers_are_a_failure() -> None:
    found, _ = ask({"a": NO_HUB}, "a")
    assert found == LookUp({}, NO_HUB.sentence)
