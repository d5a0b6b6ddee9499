"""What is asked of the Hub about files on disk, and what is done when it does not answer."""

from pathlib import Path

from qwendesk.hub.hub_comparison import compare_with_hub
from qwendesk.hub.network import HubError, HubErrorKind
from qwendesk.hub.remote import RemoteFile
from tests.hub.verified import COMMIT, NEW, OLD, REPO, catalog, codes, gather, lay_record, qwen, unsloth

NAME = "Qwen3.5-35B-A3B-Q4_K_M.gguf"
OTHER_REPO = "bartowski/Qwen_Qwen3.5-9B-GGUF"


class FakeHub:
    """Answers from two tables: what repositories have now, and the dates of files at commits."""

    def __init__(
        self, repos: dict[str, list[str]], dates: dict[str, str] | None = None, fails: HubErrorKind | None = None
    ):
        self.repos, self.dates, self.fails = repos, dates or {}, fails
        self.asked: list[str] = []

    def files(self, repo: str, revision: str = "main") -> tuple[RemoteFile, ...]:
        self.asked.append(repo)
        if self.fails or repo not in self.repos:
            raise HubError(self.fails or "not_found", "HubErrorKind", f"No answer about {repo}.")
        return tuple(self._file(repo, path, "f" * 40, "2026-05-01T00:00:00+00:00") for path in self.repos[repo])

    def file(self, repo: str, path: str, revision: str = "main") -> RemoteFile:
        self.asked.append(f"{path}@{revision}")
        return self._file(repo, path, revision, self.dates[revision])

    def _file(self, repo: str, path: str, revision: str, date: str) -> RemoteFile:
        return RemoteFile(repo, path, revision, 5, NEW, NEW, date)


def test_an_early_version_is_found_by_the_date_of_its_commit(tmp_path: Path) -> None:
    path = unsloth(tmp_path / REPO / NAME)
    lay_record(path, OLD)
    hub = FakeHub({REPO: [NAME]}, {COMMIT: "2026-02-25T10:00:00+00:00"})

    asked = compare_with_hub([gather(path)], hub, catalog())

    assert codes(asked.everything[0]) == {"outdated-upstream", "unsloth-before-fix"}
    assert asked.problems == ()


def test_each_repository_is_asked_once_and_dates_only_where_they_prove_something(tmp_path: Path) -> None:
    present, other = qwen(tmp_path / REPO / NAME), qwen(tmp_path / OTHER_REPO / "x.gguf")
    lay_record(present, NEW)
    lay_record(other, OLD)
    hub = FakeHub({REPO: [NAME], OTHER_REPO: ["x.gguf"]})
    loose = qwen(tmp_path / "loose" / "y.gguf")

    compare_with_hub([gather(present), gather(present), gather(other), gather(loose)], hub, catalog())

    assert hub.asked == [REPO, OTHER_REPO]


def test_file_removed_from_the_repository_is_reported(tmp_path: Path) -> None:
    path = qwen(tmp_path / REPO / NAME)

    asked = compare_with_hub([gather(path)], FakeHub({REPO: ["another.gguf"]}), catalog())

    assert codes(asked.everything[0]) == {"deleted-upstream"}


def test_folder_that_looks_like_a_repository_causes_no_error(tmp_path: Path) -> None:
    evidence = gather(qwen(tmp_path / "me" / "My-GGUF" / "x.gguf"))

    asked = compare_with_hub([evidence], FakeHub({}), catalog())

    assert (asked.everything, asked.problems) == ((evidence,), ())


def test_connection_failure_is_reported_after_one_attempt(tmp_path: Path) -> None:
    both = [gather(qwen(tmp_path / repo / NAME)) for repo in (REPO, OTHER_REPO)]
    hub = FakeHub({}, fails="no_connection")

    asked = compare_with_hub(both, hub, catalog())

    assert list(asked.everything) == both
    assert hub.asked == [REPO]
    assert asked.problems == (f"No answer about {REPO}.",)


def test_a_gated_repository_does_not_stop_the_others(tmp_path: Path) -> None:
    both = [gather(qwen(tmp_path / repo / NAME)) for repo in (REPO, OTHER_REPO)]
    hub = FakeHub({}, fails="gated")

    assert len(compare_with_hub(both, hub, catalog()).problems) == 2
