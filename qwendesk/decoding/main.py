"""Entry point of the decoding process: limits its memory, decodes the file on standard input and replies."""

import faulthandler
import io
import os
import stat
import sys
from collections.abc import Sequence
from typing import BinaryIO

import msgspec

from qwendesk.decoding.limits import MAX_FILE_BYTES, MAX_PROCESS_BYTES, TIME_LIMIT_S
from qwendesk.decoding.memory_limit import limit_memory
from qwendesk.decoding.protocol import (
    DecodeImage,
    DecodeRefusal,
    DecodeReply,
    DecodeRequest,
    InspectImage,
    ReadOfficeText,
    ReadPage,
)

OPTION = "--decode-file"
"""Argument before the request, with which the bundle's engine program becomes a decoding process."""


def main(arguments: Sequence[str]) -> int:
    """Serve the request in the last argument. Return 0 if a reply was sent, even a refusal."""
    request: DecodeRequest = msgspec.json.decode(arguments[-1], type=DecodeRequest)
    if sys.platform == "win32":
        import msvcrt

        for descriptor in (0, 1):
            msvcrt.setmode(descriptor, os.O_BINARY)
    limit_memory(MAX_PROCESS_BYTES)
    # The app enforces the time limit. This one is for the case that the app is gone.
    faulthandler.dump_traceback_later(TIME_LIMIT_S, exit=True)
    reply, payload = _serve(request)
    with open(1, "wb", closefd=False) as output:
        output.write(msgspec.json.encode(reply) + b"\n")
        output.write(payload)
    return 0


def _serve(request: DecodeRequest) -> tuple[DecodeReply, bytes]:
    try:
        file = _open_input()
        if isinstance(request, InspectImage | DecodeImage):
            from qwendesk.decoding.image_decoder import decode_image

            return decode_image(file, request)
        if isinstance(request, ReadOfficeText):
            from qwendesk.decoding.office_decoder import decode_office

            return decode_office(file, request)
        if isinstance(request, ReadPage):
            from qwendesk.decoding.page_decoder import decode_page

            return decode_page(file, request)
        from qwendesk.decoding.pdf_decoder import decode_pdf

        return decode_pdf(file, request)
    except MemoryError:
        return DecodeRefusal(reason="out_of_memory"), b""
    except Exception as error:  # noqa: BLE001 - libraries raise anything for a damaged file
        return DecodeRefusal(reason="damaged", detail=str(error) or type(error).__name__), b""


def _open_input() -> BinaryIO:
    """Return standard input as a seekable file: the file itself, or the bytes from a pipe."""
    file = open(0, "rb", closefd=False)  # noqa: SIM115 - it is open as long as the process
    # Not `seekable`, which is true for pipes too in some versions of Python on Windows.
    if not stat.S_ISREG(os.fstat(0).st_mode):
        return io.BytesIO(file.read(MAX_FILE_BYTES))
    file.seek(0)
    return file


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
