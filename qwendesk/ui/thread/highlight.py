"""Code to coloured runs, through pygments. Pure Python, no Qt."""

import functools

import msgspec
from pygments.lexer import Lexer
from pygments.lexers import get_all_lexers, get_lexer_by_name
from pygments.token import Comment, Error, Keyword, Name, Number, Operator, String, _TokenType

PLAIN = "code_text"
_LONGEST = 20_000
"""Characters in one piece beyond which colours are left out rather than keep the window waiting."""
_COMMON = (
    "python",
    "bash",
    "json",
    "javascript",
    "typescript",
    "html",
    "css",
    "c",
    "cpp",
    "java",
    "rust",
    "go",
    "sql",
    "yaml",
)
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


class Coloured(msgspec.Struct, frozen=True):
    """A beginning of some code that keeps its colours whatever follows, and the rest; both may be empty."""

    settled: tuple[Run, ...]
    settled_length: int
    rest: tuple[Run, ...]


def highlight(code: str, language: str) -> Coloured:
    """`code` as runs that add up to it; plain runs for an unknown language or a very long piece.

    The cut is after a line end between statements, so that both parts can be coloured apart; it lies at least 400
    characters before the end, because what the last lines are may still change.
    """
    lexer = _lexer(language.strip().lower())
    limit = len(code) - 400
    if lexer is None or len(code) > _LONGEST:
        cut = max(0, code.rfind("\n", 0, max(0, limit)) + 1)
        return Coloured(_plain(code[:cut]), cut, _plain(code[cut:]))
    runs: list[Run] = []
    cut = position = runs_before_cut = 0
    for kind, text in lexer.get_tokens(code):
        position += len(text)
        role = _role(kind)
        if runs and position != cut and len(runs) > runs_before_cut and (runs[-1].role == role or not text.strip()):
            runs[-1] = Run(runs[-1].text + text, runs[-1].role)
        elif text:
            runs.append(Run(text, role))
        if position <= limit and text.endswith("\n") and not _spans_lines(kind) and code[position].strip():
            cut, runs_before_cut = position, len(runs)
    if "".join(run.text for run in runs) != code:
        return Coloured((), 0, _plain(code))
    return Coloured(tuple(runs[:runs_before_cut]), cut, tuple(runs[runs_before_cut:]))


def warm_up() -> None:
    """Make the lexers of common languages ready. Takes half a second of a core: for a background thread."""
    for language in _COMMON:
        highlight("x = 1\n", language)


def language_name(info: str) -> str:
    """The language a fence names: "python" for ```` ```python title="x" ````, "" for none."""
    words = info.split()
    return words[0].strip("{}.,") if words else ""


@functools.cache
def _lexer(language: str) -> Lexer | None:
    if language not in _languages():
        return None
    return get_lexer_by_name(language, stripnl=False, ensurenl=False, stripall=False)


@functools.cache
def _languages() -> frozenset[str]:
    """Every name pygments itself knows. Asking it for another would search all installed packages for plugins."""
    return frozenset(alias for _, aliases, _, _ in get_all_lexers(plugins=False) for alias in aliases)


@functools.cache
def _role(kind: _TokenType) -> str:
    return next((role for base, role in _ROLES if _is_in(kind, base)), PLAIN)


def _is_in(kind: _TokenType, base: _TokenType) -> bool:
    """Whether `kind` is `base` or a refinement of it (pygments kinds are tuples of names)."""
    return kind[: len(base)] == base


def _spans_lines(kind: _TokenType) -> bool:
    """Whether code of this kind may go on after a line end."""
    return _is_in(kind, String) or _is_in(kind, Comment.Multiline)


def _plain(code: str) -> tuple[Run, ...]:
    return (Run(code, PLAIN),) if code else ()
