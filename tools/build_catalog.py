"""Checks resources/catalog.json, and adds what the Hub says: `python -m tools.build_catalog`.

The file is its own source: each fact is written into it by hand, in a line of its own. This tool checks that each has a
source and a date and that nothing is missing, and writes the file in its one layout. With --repository OWNER/NAME and
--model ID it asks the Hub for the files of a repository first: names, quants, sizes, hashes and days. Of a model that
the catalog doesn't know, it adds what the header of the smallest file says; the rest is then named as missing, and is a
person's to write (docs/catalog.md).
"""

import argparse
import datetime
import json
import math
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec

from qwendesk.core.errors import QwenDeskError
from qwendesk.core.file_names import Shard, quant_in_name
from qwendesk.core.model_facts import LAZY_TABLE, Hyperparameters, ModelFacts
from qwendesk.hub.catalog import FILE_NAME, Catalog, decode_catalog
from qwendesk.hub.catalog_schema import CatalogFile, CatalogModel, Contents, Licence, Repository
from qwendesk.hub.catalog_updates import update_of, updated
from qwendesk.hub.companion_pairing import QUANT_ORDER
from qwendesk.hub.network import HubError, Network, endpoint_from_environment
from qwendesk.hub.remote import Hub
from qwendesk.models.repo_files import repo_files, set_facts

FILE = Path(__file__).resolve().parent.parent / "resources" / FILE_NAME
# Sources that give no date for what they measured.
_UNDATED = frozenset({"Community test on a 24 GB GPU (r/LocalLLaMA)", "Unsloth's documentation"})


def layout(contents: Contents) -> str:
    """Return the text of the file: one line for each fact, so that a change of a fact is a change of its line."""
    parts = []
    for name, value in msgspec.to_builtins(contents).items():
        if isinstance(value, tuple):
            lines = [_repository(each) if name == "repositories" else _line(each) for each in value]
            parts.append(f'"{name}":[\n' + ",\n".join(lines) + "\n]")
        elif isinstance(value, dict):
            lines = [f"{_line(key)}:{_line(each)}" for key, each in value.items()]
            parts.append(f'"{name}":{{\n' + ",\n".join(lines) + "\n}")
        else:
            parts.append(f'"{name}":{_line(value)}')
    return "{\n" + ",\n".join(parts) + "\n}\n"


def _line(value: object) -> str:
    return json.dumps(_short(value), ensure_ascii=False, separators=(",", ":"))


def _short(value: object) -> object:
    """Return a value with whole numbers in place of floats that are whole: 20 for 20.0."""
    if isinstance(value, dict):
        return {key: _short(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_short(each) for each in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _repository(value: dict[str, Any]) -> str:
    files = value.pop("files")
    return f'{_line(value)[:-1]},"files":[\n' + ",\n".join(map(_line, files)) + "\n]}"


def problems(catalog: Catalog) -> Iterator[str]:
    """Yield what is missing or can't be right, each in a sentence."""
    contents = catalog.contents
    offered = {each.model for each in catalog.repositories if any(file.kind == "model" for file in each.files)}
    for model in catalog.models:
        by_hand = ("purpose", "released", "params_b", "active_params_b", "base_repo", "presets")
        empty = [name for name in by_hand if not getattr(model, name)]
        empty += [f"licence.{name}" for name in ("name", "source") if not getattr(model.licence, name)]
        if empty:
            yield f"{model.id} has no {', '.join(empty)}."
        if model.presets and model.presets not in contents.presets:
            yield f"{model.id} names the presets {model.presets!r}, which aren't there."
        if model.id not in offered:
            yield f"{model.id} is in no repository."
    for repository in catalog.repositories:
        yield from _problems_of(catalog, repository)
    for name in ("quality", "benchmarks", "speeds", "other_speeds", "notes"):
        for fact in getattr(contents, name):
            said = f"{fact.model or 'any model'} {getattr(fact, 'quant', '') or getattr(fact, 'name', '')}"
            if not fact.source:
                yield f"A fact in {name} has no source: {said}."
            elif not fact.date and fact.source not in _UNDATED:
                yield f"A fact in {name} has no date: {said}, {fact.source}."
            elif fact.date[:10] > contents.date:
                yield f"A fact in {name} is newer than the catalog's date: {said}, {fact.date}."
            if fact.model and catalog.model(fact.model) is None:
                yield f"A fact in {name} is of {fact.model}, which isn't there."
    for each in contents.superseded:
        if catalog.is_current(each.sha256):
            yield f"{each.path} of {each.repo} is listed as replaced, and is there."


def _problems_of(catalog: Catalog, repository: Repository) -> Iterator[str]:
    repo, paths = repository.repo, [file.path for file in repository.files]
    if catalog.model(repository.model) is None:
        yield f"{repo} is of {repository.model}, which isn't there."
    if repository.mmproj_path and catalog.find_file(repository.mmproj_repo, repository.mmproj_path) is None:
        yield f"{repo} names the vision file {repository.mmproj_path}, which isn't there."
    if len(set(paths)) < len(paths):
        yield f"{repo} has a file twice."
    for file in repository.files:
        yield from (f"{repo}, {file.path}: {reason}." for reason in _faults(file))


def _faults(file: CatalogFile) -> Iterator[str]:
    shard = Shard.parse(file.path)
    if not file.n_bytes:
        yield "no size"
    if file.kind == "model" and file.quant != quant_in_name(file.path):
        yield f"its quant is {file.quant!r}, but its name says {quant_in_name(file.path)!r}"
    if file.parts and (shard is None or not shard.is_first or shard.count != len(file.parts)):
        yield "its shards aren't those that its name says"
    if file.parts and abs(sum(part.n_bytes for part in file.parts) - file.n_bytes) > len(file.parts):
        yield "its shards are together larger or smaller than it"


def with_repository(catalog: Catalog, hub: Hub, repo: str, model: str, day: str) -> Catalog:
    """Return the catalog with all files that a repository of `model` has now. Raises HubError, and BadModelFile.

    A repository that is there already is brought up to date as the app does it: what was replaced or withdrawn is noted
    as such. Only files whose names say that they are of `model` are taken.
    """
    files = hub.files(repo)
    contents = catalog.contents
    if catalog.model(model) is None:
        items = [each for each in repo_files(files) if model.lower() in each.path.lower()]
        if not items:
            raise HubError("not_found", "No models", f"{repo} has no files of {model}.")
        contents = _with(contents, "models", model_from(set_facts(hub, files, items[0].path), model))
    if catalog.repository(repo) is None:
        contents = _with(contents, "repositories", Repository(repo=repo, model=model, seen=day, files=()))
    found = updated(Catalog(contents), {repo: update_of(files, day)})
    repositories = tuple(_with_mmproj(found, each) if each.repo == repo else each for each in found.repositories)
    contents = msgspec.structs.replace(found.contents, repositories=repositories, date=max(contents.date, day))
    return Catalog(contents)


def _with(contents: Contents, name: str, value: object) -> Contents:
    return msgspec.structs.replace(contents, **{name: (*getattr(contents, name), value)})


def _with_mmproj(catalog: Catalog, repository: Repository) -> Repository:
    """Return the repository with a vision file of its own, or else that of another repository of its model."""
    own = [file for file in repository.files if file.kind == "mmproj" and file.quant in QUANT_ORDER]
    best = min(own, key=lambda file: QUANT_ORDER.index(file.quant), default=None)
    if best is not None:
        return msgspec.structs.replace(repository, mmproj_repo=repository.repo, mmproj_path=best.path)
    others = (each for each in catalog.repositories if each.model == repository.model and each.mmproj_path)
    other = next(others, None)
    if repository.mmproj_path or other is None:
        return repository
    return msgspec.structs.replace(repository, mmproj_repo=other.mmproj_repo, mmproj_path=other.mmproj_path)


def model_from(facts: ModelFacts, model: str) -> CatalogModel:
    """Return the entry of a model with what a header says of it; the rest is empty."""
    weights = sum(math.prod(tensor.shape) for tensor in facts.tensors)
    used = facts.expert_used_count / facts.expert_count if facts.expert_count else 1.0
    experts = sum(math.prod(tensor.shape) for tensor in facts.tensors if "_exps." in tensor.name)
    table = next((tensor.shape for tensor in facts.tensors if tensor.name == LAZY_TABLE), (0, 0))
    same = {name: getattr(facts, name) for name in Hyperparameters.__struct_fields__ if hasattr(facts, name)}
    same |= {"block_count": facts.block_count - facts.nextn_layers, "ngram_row_length": table[0]}
    return CatalogModel(
        id=model,
        purpose="",
        released="",
        architecture=facts.architecture,
        params_b=_billions(weights),
        active_params_b=_billions(weights - experts * (1 - used) - math.prod(table)),
        base_repo="",
        presets="",
        hyperparameters=Hyperparameters(**same, ngram_rows=table[1]),
        licence=Licence(name="", source=""),
    )


def _billions(count: float) -> float:
    return float(f"{count / 1e9:.4g}")


def main(
    arguments: Sequence[str] | None = None,
    *,
    file: Path = FILE,
    say: Callable[[str], object] = print,
    today: Callable[[], datetime.date] = datetime.date.today,
) -> int:
    """Run the tool and return the exit status: 1 if anything is missing. The file is written all the same."""
    parser = argparse.ArgumentParser(prog="python -m tools.build_catalog", description="Check and lay out the catalog.")
    parser.add_argument("--repository", metavar="OWNER/NAME", help="ask the Hub for the files of this repository")
    parser.add_argument("--model", metavar="ID", default="", help="the model in it, as in file names")
    options = parser.parse_args(arguments)
    try:
        catalog = decode_catalog(file.read_bytes())
        if options.repository:
            known = catalog.repository(options.repository)
            model = options.model or (known.model if known is not None else "")
            if not model:
                parser.error("a repository that the catalog doesn't know needs --model")
            hub = Hub(Network(endpoint=endpoint_from_environment()))
            catalog = with_repository(catalog, hub, options.repository, model, today().isoformat())
    except QwenDeskError as error:
        say(error.sentence)
        return 1
    file.write_text(layout(catalog.contents), encoding="utf-8", newline="\n")
    found = list(problems(catalog))
    for problem in found:
        say(problem)
    n_files = sum(len(each.files) for each in catalog.repositories)
    say(f"{len(catalog.models)} models, {len(catalog.repositories)} repositories, {n_files} files.")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
