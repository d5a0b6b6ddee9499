"""Files that a repository of the catalog has had only since the catalog was built. Pure rules over their names."""

from collections.abc import Collection, Sequence

from qwendesk.core.file_names import Shard, is_helper_name, is_imatrix_name, is_mmproj_name, quant_in_name
from qwendesk.hub.catalog import Catalog, part_path
from qwendesk.hub.catalog_schema import CatalogFile, FileKind, Part, Repository


def find_new_files(
    catalog: Catalog, repository: Repository, known: Sequence[CatalogFile], paths: Collection[str]
) -> list[CatalogFile]:
    """Return the files at `paths` of a repository that are not `known`, without sizes and hashes.

    A model is only taken if its name says that it is the repository's model, in a quant that no known file has: another
    file is another variant, of which the catalog has no facts. A split model is taken once all its shards are there.
    """
    listed = {part_path(file, part) for file in known for part in range(len(file.parts) or 1)}
    quants = {file.quant.upper() for file in known if file.kind == "model"}
    found = []
    for path in sorted(paths):
        shard = Shard.parse(path)
        if path in listed or (shard is not None and not (shard.is_first and set(shard.siblings) <= set(paths))):
            continue
        kind, quant = _kind(path), quant_in_name(path)
        if kind == "model" and (not quant or quant in quants or not _is_of(catalog, repository, path)):
            continue
        quants.update({quant} if kind == "model" else ())
        parts = tuple(Part(0) for _ in shard.siblings) if shard is not None else ()
        found.append(CatalogFile(path=path, n_bytes=0, kind=kind, quant=quant, parts=parts))
    return found


def _kind(path: str) -> FileKind:
    if not is_helper_name(path):
        return "model"
    if is_mmproj_name(path):
        return "mmproj"
    return "imatrix" if is_imatrix_name(path) else "draft"


def _is_of(catalog: Catalog, repository: Repository, path: str) -> bool:
    """Return whether the file's name says that it is the repository's model."""
    model = catalog.model_of(path.rpartition("/")[2])
    return model is not None and model.id == repository.model
