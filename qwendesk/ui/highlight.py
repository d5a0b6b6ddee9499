"""Code to coloured runs, through pygments. Pure Python, no Qt."""

import functools

import msgspec
from pygments.lexer import Lexer
from pygments.lexers import get_lexer_by_name
from pygments.token import Comment, Error, Keyword, Name, Number, Operator, String, _TokenType
from pygments.util import ClassNotFound

PLAIN = "code_text"
_LONGEST = 20_000
"""Characters in one piece beyond which colours are left out rather than keep the window waiting."""
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


class Run(msgspec.Struct, frozen=True):
    """Text in one colour: the theme's role."""

    text: str
    role: str


def highlight(code: str, language: str) -> list[Run]:
    """`code` as runs that add up to it; one plain run for an unknown language or a very long piece."""
    lexer = _lexer(language.strip().lower())
    if lexer is None or len(code) > _LONGEST:
        return [Run(code, PLAIN)] if code else []
    runs: list[Run] = []
    for kind, text in lexer.get_tokens(code):
        role = _role(kind)
        if runs and (runs[-1].role == role or not text.strip()):
            runs[-1] = Run(runs[-1].text + text, runs[-1].role)
        elif text:
            runs.append(Run(text, role))
    return _fit(runs, code)


def safe_cut(code: str, language: str) -> int:
    """Where `code` can be cut so that both parts get the colours of the whole: after a line end between statements.

    0 when there is no such place. The cut is the last one at least 400 characters before the end.
    """
    lexer = _lexer(language.strip().lower())
    limit = len(code) - 400
    if lexer is None:
        return code.rfind("\n", 0, max(0, limit)) + 1
    cut = position = 0
    for kind, text in lexer.get_tokens(code):
        position += len(text)
        if position > limit:
            break
        following = code[position : position + 1]
        if (
            text.endswith("\n")
            and not _is_in(kind, String)
            and not _is_in(kind, Comment.Multiline)
            and following.strip()
        ):
            cut = position
    return cut


def language_name(info: str) -> str:
    """The language a fence names: "python" for ```` ```python title="x" ````, "" for none."""
    words = info.split()
    return words[0].strip("{}.,") if words else ""


@functools.cache
def _lexer(language: str) -> Lexer | None:
    if not language:
        return None
    try:
        return get_lexer_by_name(language, stripnl=False, ensurenl=False, stripall=False)
    except ClassNotFound:
        return None


@functools.cache
def _role(kind: _TokenType) -> str:
    return next((role for base, role in _ROLES if _is_in(kind, base)), PLAIN)


def _is_in(kind: _TokenType, base: _TokenType) -> bool:
    """Whether `kind` is `base` or a refinement of it (pygments kinds are tuples of names)."""
    return kind[: len(base)] == base


def _fit(runs: list[Run], code: str) -> list[Run]:
    """The runs, or one plain run should a lexer ever change the text."""
    return runs if "".join(run.text for run in runs) == code else [Run(code, PLAIN)]
