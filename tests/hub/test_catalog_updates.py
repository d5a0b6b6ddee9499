"""What the Hub said is remembered, and changes what the catalog knows."""

from pathlib import Path

from qwendesk.hub.catalog import Catalog
from qwendesk.hub.catalog_schema import CatalogFile, Repository, WithdrawnFile
from qwendesk.hub.catalog_updates import (
    CatalogChanges,
    CatalogStore,
    RepositoryUpdate,
    changes_between,
    joined,
    update_of,
    updated,
)
from qwendesk.hub.remote import RemoteFile
from qwendesk.models.ranking import find_flag
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


def test_answers_are_saved_for_the_next_start(tmp_path: Path) -> None:
    store = CatalogStore(lambda: KNOWN, tmp_path)
    assert store.catalog is KNOWN
    store.add({REPO: answered(), "some/other": answered()})

    for each in (store, CatalogStore(lambda: KNOWN, tmp_path)):
        assert each.updates == {REPO: answered()}
        assert each.catalog.superseded(OLD) is not None


def test_answer_without_news_keeps_the_catalog(tmp_path: Path) -> None:
    store = CatalogStore(lambda: KNOWN, tmp_path)
    store.add({REPO: answered()})
    before = store.catalog

    store.add({REPO: answered()})
    assert store.catalog is before
    store.add({REPO: answered("2026-08-03")})
    assert store.catalog is not before


MODEL = "Qwen3.5-35B-A3B"
Q4, Q8 = f"{MODEL}-Q4_K_M.gguf", f"{MODEL}-Q8_0.gguf"
WITH_Q4 = catalog(files=[CatalogFile(Q4, 10, quant="Q4_K_M", sha256=OLD, is_exact=True)])


def listed(*paths: str, before: Catalog = WITH_Q4, sha256: str = NEW) -> Catalog:
    """The catalog once the Hub lists these files, the picture file and the Q4_K_M."""
    files = [remote("mmproj-F16.gguf", "1" * 64, 899_283_648), remote(Q4, OLD, 10)]
    files += [remote(path, sha256) for path in paths]
    return updated(before, {REPO: update_of(files, "2026-08-02")})


def kinds(found: Catalog) -> dict[str, tuple[str, str]]:
    (repository,) = found.repositories
    return {file.path: (file.kind, file.quant) for file in repository.files}


def test_new_quant_is_in_the_catalog_with_size_hash_and_date() -> None:
    found = listed(Q8).find_file(REPO, Q8)

    assert found is not None
    assert (found.file.kind, found.file.quant) == ("model", "Q8_0")
    assert (found.n_bytes, found.sha256, found.file.seen) == (123, NEW, "2026-08-01")
    assert listed(Q8).is_current(NEW)


def test_helper_files_are_never_models() -> None:
    helpers = {
        f"mtp-{MODEL}-Q8_0.gguf": ("draft", "Q8_0"),
        f"MTP/{MODEL}-DFlash-Q8_0.gguf": ("draft", "Q8_0"),
        f"{MODEL}-imatrix.gguf": ("imatrix", ""),
        "mmproj-BF16.gguf": ("mmproj", "BF16"),
    }
    assert kinds(listed(*helpers)) == kinds(WITH_Q4) | helpers


def test_files_of_other_models_and_variants_are_left_out() -> None:
    others = ("Qwen3.6-27B-Q8_0.gguf", "Else-4B-Q8_0.gguf", f"{MODEL}.gguf", f"{MODEL}-MTP-Q4_K_M.gguf")
    assert kinds(listed(*others)) == kinds(WITH_Q4)


def test_new_split_model_is_one_file_once_all_its_shards_are_there() -> None:
    shards = tuple(f"BF16/{MODEL}-BF16-{number:05}-of-00003.gguf" for number in (1, 2, 3))

    assert kinds(listed(*shards[:2])) == kinds(WITH_Q4)
    found = listed(*shards).find_file(REPO, shards[2])
    assert found is not None
    assert (found.file.path, found.file.quant, found.file.n_bytes, found.n_bytes) == (shards[0], "BF16", 369, 123)


def test_file_that_moved_is_named_in_place_of_the_old_one() -> None:
    moved = f"Q4_K_M/{Q4}"
    after = updated(WITH_Q4, {REPO: update_of([remote(moved, NEW), remote("mmproj-F16.gguf", NEW)], "2026-08-02")})

    withdrawn = after.deletion(REPO, Q4)
    assert withdrawn is not None
    assert withdrawn.instead == moved
    assert kinds(after)[moved] == ("model", "Q4_K_M")


def test_picture_file_that_is_gone_is_replaced_by_another_one_and_never_by_a_model() -> None:
    model, moved = remote(f"BF16/{MODEL}-BF16.gguf", NEW), remote("mmproj-BF16.gguf", OTHER)
    mmproj = CatalogFile("mmproj-model-BF16.gguf", 10, kind="mmproj", quant="BF16", is_exact=True)
    before = catalog(files=[*WITH_Q4.repositories[0].files[:1], mmproj])

    def instead_after(*files: RemoteFile) -> str:
        withdrawn = updated(before, {REPO: update_of([remote(Q4, OLD, 10), *files], "2026-08-02")}).deletion(
            REPO, mmproj.path
        )
        assert withdrawn is not None
        return withdrawn.instead

    assert instead_after(model) == ""
    assert instead_after(model, moved) == "mmproj-BF16.gguf"


def test_file_that_comes_back_is_not_withdrawn_and_its_old_bytes_are_replaced() -> None:
    withdrawn = WithdrawnFile(REPO, Q8, "2026-05-01", OTHER)
    before = catalog(files=WITH_Q4.repositories[0].files[:1], deletions=[withdrawn])
    after = listed(Q8, before=before)

    found = after.find_file(REPO, Q8)
    assert found is not None
    assert find_flag(before, before.repositories[0], found.file)
    assert find_flag(after, after.repositories[0], found.file) == ""
    replaced = after.superseded(OTHER)
    assert replaced is not None
    assert replaced.replaced_by == NEW
    assert listed(Q8, before=before, sha256=OTHER).superseded(OTHER) is None, "the same bytes are back"


def test_another_picture_file_is_paired_if_the_known_one_is_gone() -> None:
    files = [remote(Q4, OLD, 10), remote("mmproj-Q8_0.gguf", NEW), remote("mmproj-BF16.gguf", OTHER)]
    lender = updated(WITH_Q4, {REPO: update_of(files, "2026-08-02")})
    assert lender.repositories[0].mmproj_path == "mmproj-BF16.gguf"

    without = updated(WITH_Q4, {REPO: update_of(files[:1], "2026-08-02")})
    assert without.repositories[0].mmproj_path == ""


def test_changes_are_counted_for_models_and_picture_files() -> None:
    files = [remote(Q4, NEW, 10), remote(Q8, OTHER), remote(f"{MODEL}-imatrix.gguf", "2" * 64)]
    after = updated(WITH_Q4, {REPO: update_of(files, "2026-08-02")})

    assert changes_between(WITH_Q4, after) == CatalogChanges(n_new=1, n_replaced=1, n_removed=1)
    assert changes_between(after, after) == CatalogChanges()


def test_hash_or_exact_size_that_was_not_known_is_no_change() -> None:
    rounded = CatalogFile(Q4, 12, quant="Q4_K_M")
    before = catalog(files=[rounded])

    assert changes_between(before, listed(before=before)) == CatalogChanges()
    exact = catalog(files=[CatalogFile(Q4, 12, quant="Q4_K_M", is_exact=True)])
    assert changes_between(exact, listed(before=exact)) == CatalogChanges(n_replaced=1)


def test_repositories_of_unknown_uploaders_are_not_added() -> None:
    assert all(isinstance(each, Repository) and each.repo == REPO for each in listed(Q8).repositories)
    assert updated(WITH_Q4, {"some/other": answered()}).repositories == WITH_Q4.repositories
