"""A model on another server, written where the path of a model file stands otherwise: "http://127.0.0.1:8080#name"."""

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


def served_model(model: str) -> ServedModel | None:
    """Return the server and the name that `LoadOptions.model` stands for; None if it is a file's path."""
    if not is_served(model):
        return None
    address, _, name = model.partition("#")
    return ServedModel(address, name)


def is_served(model: str) -> bool:
    return model.startswith(_SCHEMES)
