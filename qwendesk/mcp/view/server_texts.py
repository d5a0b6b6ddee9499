"""What the settings page says about a server."""

from qwendesk.core.translation import tr, tr_n
from qwendesk.mcp.host_protocol import ServerOffer
from qwendesk.mcp.server import McpServerState


def status_text(state: McpServerState) -> str:
    """Return how a server is now, in a few words."""
    if not state.config.is_on:
        return tr("Off")
    match state.phase:
        case "starting":
            return tr("Starting…")
        case "failed":
            return tr("Doesn't run")
        case "running":
            return tr("Running, {0}", _tools_text(state.config.offer))
        case "stopped" if not state.config.offer.server and not state.config.offer.tools:
            return tr("Not tested")
        case "stopped":
            return tr("Starts when needed, {0}", _tools_text(state.config.offer))


def offer_text(offer: ServerOffer) -> str:
    """Return what a server calls itself and what else it offers; "" if it was never reached."""
    counts = (
        (len(offer.resources), tr_n("{0} resource", "{0} resources", len(offer.resources))),
        (len(offer.prompts), tr_n("{0} prompt", "{0} prompts", len(offer.prompts))),
    )
    others = ", ".join(text for count, text in counts if count)
    sentences = [tr("It calls itself {0}.", offer.server)] if offer.server else []
    if others:
        sentences.append(tr("Also: {0}.", others))
    if offer.not_callable:
        names = ", ".join(offer.not_callable)
        sentences.append(tr("Can't be called, because their arguments are not a JSON object: {0}.", names))
    if offer.n_left_out:
        sentences.append(
            tr_n("{0} thing it offers is left out: too many or too large.",
                 "{0} things it offers are left out: too many or too large.", offer.n_left_out)
        )  # fmt: skip
    return " ".join(sentences)


def _tools_text(offer: ServerOffer) -> str:
    return tr_n("{0} tool", "{0} tools", len(offer.tools))
