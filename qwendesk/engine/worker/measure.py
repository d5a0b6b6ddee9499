"""What a conversation and its pictures would cost, without reading anything."""

from qwendesk.core.errors import BadRequest
from qwendesk.core.messages import ImagePart
from qwendesk.engine.protocol import Measure, Measured, PictureCost, Rendered, Rendering
from qwendesk.engine.worker.generate import Send, prompt_of
from qwendesk.engine.worker.loader import Session
from qwendesk.engine.worker.prompt import Picture


def measure(session: Session, request: Measure, send: Send) -> Measured:
    """Tokens of the whole prompt and of each picture. Raises BadRequest for a file that is no picture."""
    costs = tuple(_cost(session, part) for part in request.pictures)
    n_tokens = 0
    if request.messages:
        send(Rendering(id=request.id))
        prompt = prompt_of(session, request.messages, request.options)
        send(Rendered(id=request.id))
        n_tokens = sum(
            _cost(session, piece.image).tokens if isinstance(piece, Picture) else len(piece) for piece in prompt.pieces
        )
    return Measured(id=request.id, prompt_tokens=n_tokens, pictures=costs, n_ctx=session.model.n_ctx)


def _cost(session: Session, part: ImagePart) -> PictureCost:
    if session.vision is None:
        raise BadRequest(
            "No picture support", "This model is loaded without its mmproj file, so it cannot see pictures."
        )
    width, height, n_tokens = session.vision.count(part)
    return PictureCost(sha256=part.sha256, width=width, height=height, tokens=n_tokens)
