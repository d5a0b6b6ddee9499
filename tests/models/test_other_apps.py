"""What the first start says of the models that other programs left on this PC."""

from pathlib import Path

from qwendesk.hub.library import Library, LibraryFile, LibraryModel
from qwendesk.hub.library_places import Origin, SearchFolder
from qwendesk.hub.library_walk import OtherFormat
from qwendesk.models.other_apps import models_by_app


def model(name: str, origin: Origin, n_bytes: int = 1, problem: str = "") -> LibraryModel:
    file = LibraryFile(f"/models/{name}.gguf", n_bytes, 0)
    return LibraryModel(files=(file,), name=name, origin=origin, place="/models", problem=problem)


def test_each_program_has_its_models_the_largest_first() -> None:
    library = Library(
        models=(
            model("small", "lmstudio", 1),
            model("large", "lmstudio", 2),
            model("qwen3:8b", "ollama", 9),
            model("mine", "ours"),
        )
    )
    apps = models_by_app(library, ())
    assert [(app.app, [each.name for each in app.usable]) for app in apps] == [
        ("LM Studio", ["large", "small"]),
        ("", ["mine"]),
        ("Ollama", ["qwen3:8b"]),
    ]
    assert not any(app.refusals for app in apps)


def test_what_cant_be_used_is_named_with_the_reason() -> None:
    only_ollama = "qwen3.5:35b from Ollama's library only loads in Ollama. Download the GGUF file of the model."
    library = Library(
        models=(
            model("qwen3.5:35b", "ollama", problem=only_ollama),
            model("Big-Q4_K_M", "lmstudio", problem="Missing shards (1 of 3): x. Download the model again."),
        ),
        other_formats=tuple(OtherFormat("lmstudio", f"Qwen-{number}bit", f"/x/{number}") for number in (3, 4, 5, 6)),
    )
    refusals = {app.app: app.refusals for app in models_by_app(library, ())}
    assert refusals == {
        "LM Studio": (
            "Big-Q4_K_M: Missing shards (1 of 3): x. Download the model again.",
            "Not GGUF files, so only LM Studio loads them: Qwen-3bit, Qwen-4bit, Qwen-5bit, 1 more.",
        ),
        "Ollama": (only_ollama,),
    }


def test_a_folder_that_the_account_may_not_read_is_named() -> None:
    closed, other = Path("/usr/share/ollama/.ollama/models"), Path("/closed")
    searched = (SearchFolder("ollama", closed), SearchFolder("jan", other))
    (app,) = models_by_app(Library(unreadable=(str(closed), "/somewhere/else")), searched)
    assert app.refusals == (f"Your account may not read {closed}. Join the group ollama, and sign in again.",)
    (app,) = models_by_app(Library(unreadable=(str(other),)), searched)
    assert app.refusals == (f"Your account may not read {other}.",)


def test_nothing_found_is_nothing() -> None:
    assert models_by_app(Library(), (SearchFolder("jan", Path("/jan")),)) == ()
