"""Says why a request is too large for one line of the protocol."""

from qwendesk.core.messages import ImagePart
from qwendesk.core.translation import tr
from qwendesk.core.units import show_bytes
from qwendesk.engine.protocol import Generate, Measure, Request, RequestFailed, Warm
from qwendesk.engine.protocol_lines import LINE_LIMIT_BYTES


def oversize_failure(request: Request, n_bytes: int) -> RequestFailed | None:
    """Return the failure of an encoded request of `n_bytes` that is too long to send; None if it can be sent."""
    if n_bytes <= LINE_LIMIT_BYTES:
        return None
    n_image_bytes = _encoded_image_bytes(request)
    if 2 * n_image_bytes > n_bytes:
        sentence = tr(
            "This chat and its attachments come to {0}, {1} of it pictures. The engine accepts at most {2} at once. "
            "Remove attachments, or start a new chat.",
            show_bytes(n_bytes), show_bytes(n_image_bytes), show_bytes(LINE_LIMIT_BYTES),
        )  # fmt: skip
    else:
        sentence = tr(
            "This chat and its attachments come to {0}, {1} of it text. The engine accepts at most {2} at once. Remove "
            "attachments, or start a new chat.",
            show_bytes(n_bytes), show_bytes(n_bytes - n_image_bytes), show_bytes(LINE_LIMIT_BYTES),
        )  # fmt: skip
    return RequestFailed(
        id=request.id,
        title=tr("Too large"),
        sentence=sentence,
    )


def _encoded_image_bytes(request: Request) -> int:
    """Return the base64 size in bytes of the images that a request carries as data."""
    if not isinstance(request, Generate | Measure | Warm):
        return 0
    images = [part for message in request.messages for part in message.parts if isinstance(part, ImagePart)]
    images += request.pictures if isinstance(request, Measure) else ()
    return sum(4 * len(image.data) // 3 for image in images)
