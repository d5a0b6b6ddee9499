"""What the Hub said is remembered, and changes what the catalog knows."""

from pathlib import Path

from qwendesk.hub.catalog import Catalog
from qwendesk.hub.catalog_updates import RepositoryUpdate, joined, read_updates, update_of, updated, write_updates
from qwendesk.hub.remote import RemoteFile
from tests.hub.verified import NEW, OLD, OTHER, REPO, catalog, current, current_set

NAME, SET = "a.gguf", ("b-00001-of-00002.gguf", "b-00002-of-00002.gguf")
KNOWN = catalog(files=[current(NAME, OLD, 10), current_set(SET[0], [OTHER, ""]), current("gone.gguf", "d" * 64, 10)])


def remote(path: str, sha256: str | None, n_bytes: int = 123) -> RemoteFile:
    return RemoteFile(REPO, path, "f" * 40, n_bytes, sha256, sha256 or "", "2026-08-01T10:00:00+00:00")


def answered(day: str = "2026-08-02") -> RepositoryUpdate:
    files = [remote(NAME, NEW), remote(SET[0], OTHER), remote(SET[1], "e" * 64), remote("mmproj-F16.gguf", None)]
    return update_of(files, day)


def after(day: str = "2026-08-02") -> Catalog:
    return updated(KNOWN, {REPO: answered(day)})


def test_hub_answer_updates_sizes_hashes_and_dates() -> None:
    found = after().find_file(REPO, NAME)

    assert found is not None
    assert (found.n_bytes, found.sha256, found.file.seen) == (123, NEW, "2026-08-01")
    assert (found.repository.seen, found.repository.revision) == ("2026-08-02", "f" * 40)


def test_hub_answer_adds_an_unknown_hash() -> None:
    part = after().find_file(REPO, SET[1])

    assert part is not None
    assert (part.sha256, part.n_bytes, part.file.n_bytes) == ("e" * 64, 123, 246)
    assert after().is_current("e" * 64)


def test_bytes_that_were_replaced_count_as_replaced() -> None:
    replaced = after().superseded(OLD)

    assert KNOWN.superseded(OLD) is None
    assert replaced is not None
    assert (replaced.replaced_by, replaced.replacement_seen) == (NEW, "2026-08-01")


def test_missing_file_counts_as_deleted_upstream() -> None:
    assert after().find_file(REPO, "gone.gguf") is None
    assert after().deletion(REPO, "gone.gguf") is not None


def test_answer_older_than_the_catalog_is_ignored() -> None:
    assert after(day="2026-07-01") is KNOWN
    assert updated(KNOWN, {"some/other": answered()}).find_file(REPO, NAME) == KNOWN.find_file(REPO, NAME)


def test_hash_of_an_earlier_answer_counts_as_replaced() -> None:
    early = update_of([remote(NAME, "9" * 64), remote(SET[0], OTHER), remote("gone.gguf", "8" * 64)], "2026-08-01")

    both = joined({REPO: early}, {REPO: answered()})
    later = joined(both, {REPO: answered("2026-08-03")})

    for each in (both, later):
        found = updated(KNOWN, each).superseded("9" * 64)
        assert found is not None
        assert (found.path, found.replaced_by) == (NAME, NEW)
        assert each[REPO].replaced == {"9" * 64: NAME}


def test_answers_are_remembered(tmp_path: Path) -> None:
    assert read_updates(tmp_path) == {}
    write_updates({REPO: answered()}, tmp_path)

    assert read_updates(tmp_path) == {REPO: answered()}


def test_damaged_file_counts_as_empty(tmp_path: Path) -> None:
    (tmp_path / "catalog-updates.json").write_bytes(b"{")

    assert read_updates(tmp_path) == {}
