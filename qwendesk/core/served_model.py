"""A model on another server, written where the path of a model file stands otherwise: "http://127.0.0.1:8080#name"."""

from pathlib import PurePath

import msgspec

_SCHEMES = ("http://", "https://")


class ServedModel(msgspec.Struct, frozen=True):
    """A model by the address of its server and the name that the server gives it."""

    address: str
    """Without a slash at the end, and without the "/v1" of OpenAI's API."""
    name: str

    @property
    def text(self) -> str:
        """The form in `LoadOptions.model`."""
        return f"{self.address}#{self.name}"


class ServedChoice(msgspec.Struct, frozen=True):
    """A model of a server that the user may choose."""

    model: str
    """The form in `LoadOptions.model`."""
    name: str
    details: str
    """Its server, and what that says of the model."""


def served_model(model: str) -> ServedModel | None:
    """Return the server and the name that `LoadOptions.model` stands for; None if it is a file's path."""
    if not is_served(model):
        return None
    address, _, name = model.partition("#")
    return ServedModel(address, name)


def is_served(model: str) -> bool:
    return model.startswith(_SCHEMES)


def model_title(model: str) -> str:
    """Return what to call a model: the name of its file without the ending, or the name that its server gives it."""
    served = served_model(model)
    if served is None:
        return PurePath(model).stem
    return served_name(served.name) or served.address.partition("://")[2]


def served_name(name: str) -> str:
    """Return a server's name of a model, without the folder and ending that llama-server gives one without an alias."""
    return PurePath(name.replace("\\", "/")).stem if name.lower().endswith(".gguf") else name
