"""The highlighter process: turns code into coloured runs with Pygments.

Only `qwendesk --highlighter` imports this. Pygments' lexers can take minutes for a short text, and Python cannot
interrupt them (docs/adr/012-highlighter-process.md), so none of them may run in the window's process.
"""

import faulthandler
import functools
import os
import signal
from pathlib import Path
from typing import BinaryIO

import msgspec
from pygments.lexer import Lexer
from pygments.lexers import get_all_lexers, get_lexer_by_name
from pygments.token import Comment, Error, Keyword, Name, Number, Operator, String, _TokenType

from qwendesk.chat.view.answer.highlight_protocol import (
    PLAIN,
    ColourRun,
    Highlighted,
    HighlightRequest,
    is_highlightable,
    plain,
)
from qwendesk.core.processes import is_closed_pipe

# Number of characters at the end of code whose colours may still change.
_UNSETTLED = 400
_ROLES: tuple[tuple[_TokenType, str], ...] = (
    (Comment, "code_comment"),
    (String, "code_string"),
    (Number, "code_number"),
    (Keyword, "code_keyword"),
    (Operator.Word, "code_keyword"),
    (Name.Function, "code_name"),
    (Name.Class, "code_name"),
    (Name.Decorator, "code_name"),
    (Name.Builtin, "code_name"),
    (Name.Tag, "code_keyword"),
    (Name.Attribute, "code_name"),
    (Name.Namespace, "code_name"),
    (Error, "code_text"),
)


def main() -> int:
    """Serve requests from standard input until it closes. Return the exit status, always 0."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl+C in a terminal is for the app, which closes this process
    try:
        # Opened by descriptor, because a program without a console has no sys.stdin on Windows.
        with open(0, "rb", closefd=False) as requests, open(1, "wb", closefd=False) as results:
            _serve(requests, results)
    except OSError as error:
        if not is_closed_pipe(error):  # the app is gone
            raise
    return 0


def _serve(requests: BinaryIO, results: BinaryIO) -> None:
    with Path(os.devnull).open("w", encoding="utf-8") as nowhere:
        _write_line(results, b"")
        for line in requests:
            request = msgspec.json.decode(line, type=HighlightRequest)
            _lexer(request.language)  # importing it may be slow, which must not count against the language
            # faulthandler uses a C thread that doesn't need the interpreter, so it can end the process in the middle
            # of a regular expression, even if the app no longer runs and can't end it.
            faulthandler.dump_traceback_later(request.limit_s, exit=True, file=nowhere)
            result = highlight(request.code, request.language)
            faulthandler.cancel_dump_traceback_later()
            _write_line(results, msgspec.json.encode(result))


def _write_line(results: BinaryIO, line: bytes) -> None:
    results.write(line + b"\n")
    results.flush()


def highlight(code: str, language: str) -> Highlighted:
    """Return the colours of `code`; plain for an unknown language, long lines or a lexer that fails.

    The settled part ends after a line end between statements, so that both parts can be highlighted separately.
    """
    lexer = _lexer(language)
    if lexer is None or not is_highlightable(code):
        return plain(code)
    try:
        result, text = _lex(lexer, code)
    except Exception:  # noqa: BLE001 - about 600 lexers by many authors; whatever one raises, the code stays plain
        return plain(code)
    return result if text == code else plain(code)


def _lex(lexer: Lexer, code: str) -> tuple[Highlighted, str]:
    """Return the colours, and the text of the lexer's tokens, because some lexers change `code`."""
    runs: list[ColourRun] = []
    pieces: list[str] = []
    cut = position = runs_before_cut = 0
    for kind, text in lexer.get_tokens(code):
        if not text:
            continue
        pieces.append(text)
        position += len(text)
        role = _role(kind)
        if len(runs) > runs_before_cut and (runs[-1].role == role or not text.strip()):
            runs[-1] = ColourRun(runs[-1].length + len(text), runs[-1].role)
        else:
            runs.append(ColourRun(len(text), role))
        is_line_end = position <= len(code) - _UNSETTLED and text.endswith("\n")
        if is_line_end and not _spans_lines(kind) and code[position].strip():
            cut, runs_before_cut = position, len(runs)
    return Highlighted(tuple(runs), cut), "".join(pieces)


@functools.lru_cache(maxsize=64)
def _lexer(language: str) -> Lexer | None:
    if language not in _languages():
        return None
    return get_lexer_by_name(language, stripnl=False, ensurenl=False, stripall=False)


@functools.cache
def _languages() -> frozenset[str]:
    """Return every language name that Pygments knows.

    Pygments must not be asked for other names, because it would search all installed packages for plugins.
    """
    return frozenset(alias for _, aliases, _, _ in get_all_lexers(plugins=False) for alias in aliases)


@functools.cache
def _role(kind: _TokenType) -> str:
    return next((role for base, role in _ROLES if _is_in(kind, base)), PLAIN)


def _is_in(kind: _TokenType, base: _TokenType) -> bool:
    """Return whether `kind` is `base` or a refinement of it (Pygments' token types are tuples of names)."""
    return kind[: len(base)] == base


def _spans_lines(kind: _TokenType) -> bool:
    """Return whether a token of this kind may continue on the next line."""
    return _is_in(kind, String) or _is_in(kind, Comment.Multiline)
