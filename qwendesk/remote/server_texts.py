"""The window's texts about servers and their models."""

from typing import TYPE_CHECKING

from qwendesk.core.served_model import ServedChoice, ServedModel, served_name
from qwendesk.core.translation import tr, tr_n
from qwendesk.core.units import show_bytes, show_tokens
from qwendesk.remote.dialects import DIALECTS
from qwendesk.remote.servers import RemoteServer
from qwendesk.remote.service import ListedServer, RemoteState

if TYPE_CHECKING:
    from qwendesk.remote.inspection import ModelOnServer


def status_text(listed: ListedServer) -> str:
    """Return how a server is now, in a few words."""
    if listed.is_asking:
        return tr("Asking…")
    if listed.problem:
        return tr("No answer")
    if not listed.has_answered:
        return tr("Not asked yet")
    return tr_n("{0} model", "{0} models", len(listed.models))


def status_tone(listed: ListedServer) -> str:
    """Return the tone of the chip with `status_text`."""
    if listed.problem:
        return "bad"
    return "good" if listed.has_answered and not listed.is_asking else "plain"


def about_text(server: RemoteServer) -> str:
    """Return the program of a server and its address."""
    return tr("{0} at {1}", DIALECTS[server.kind].title, server.address)


def model_details(model: "ModelOnServer") -> str:
    """Return what a server says of a model, such as "64K context · 16.9 GB · sees pictures"; "" if it says nothing."""
    context = model.n_ctx or model.n_ctx_train
    parts = (
        tr("{0} context", show_tokens(context)) if context else "",
        show_bytes(model.weights_bytes) if model.weights_bytes else "",
        tr("sees pictures") if model.can_see else "",
        "" if model.is_loaded else tr("not loaded there yet"),
    )
    return " · ".join(part for part in parts if part)


def served_choices(state: RemoteState) -> tuple[ServedChoice, ...]:
    """Return the models of all servers for the model picker."""
    return tuple(
        ServedChoice(
            ServedModel(listed.server.address, model.name).text,
            served_name(model.name),
            " · ".join(filter(None, (listed.server.title, model_details(model)))),
        )
        for listed in state.servers
        for model in listed.models
    )
