"""Reads functions, structs and constants from llama.cpp's C headers.

It knows as much C as those headers use: macros, conditions, typedefs, enums, structs and unions with pointers, arrays
and pointers to functions. A declaration that it can't read is left out, so that whoever needs it finds it missing;
nothing is guessed. Such are types whose size differs between systems, bit fields, and fields that depend on how the
library was built.

Of pycparser, only the parser itself would be of use: it takes C that is preprocessed and free of attributes and C++,
and users' PCs have no preprocessor.
"""

from collections.abc import Iterator, Mapping, Sequence

import msgspec

from qwendesk.core.engine_abi import EngineAbi, Field, Signature, StructLayout
from qwendesk.engines.c_tokens import CONDITION, CannotRead, Macro, closing, split, tokens_of, value_of

# The headers of all functions that the worker uses, each after those that it includes. In llama.cpp's source they lie
# in ggml/include, include, src (llama-ext.h) and tools/mtmd.
HEADER_NAMES = ("ggml.h", "ggml-backend.h", "ggml-cpu.h", "llama.h", "llama-ext.h", "mtmd.h", "mtmd-helper.h")

_POINTER_BYTES = 8
_ENUM_BYTES = 4
_SIZES = {
    "bool": 1, "char": 1, "int8": 1, "uint8": 1, "int16": 2, "uint16": 2, "int32": 4, "uint32": 4, "int64": 8,
    "uint64": 8, "float": 4, "double": 8,
}  # fmt: skip
# C's types in the spelling of the tables. "long" is missing, because Windows has 4 bytes for it and other systems 8.
_TYPES = {
    "void": "void", "bool": "bool", "_Bool": "bool", "char": "char", "signed char": "int8", "unsigned char": "uint8",
    "short": "int16", "unsigned short": "uint16", "int": "int32", "unsigned": "uint32", "unsigned int": "uint32",
    "long long": "int64", "unsigned long long": "uint64", "float": "float", "double": "double", "size_t": "uint64",
    **{f"{sign}int{bits}_t": f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)},
}  # fmt: skip
_TYPE_WORDS = frozenset(word for name in (*_TYPES, "long") for word in name.split())
# They change neither how a function is called nor where a field lies.
_IGNORED = frozenset({"const", "volatile", "extern", "static", "inline", "restrict", "_Noreturn"})
_KINDS = ("struct", "union", "enum")
# Name of an anonymous member, as in llama-cpp-python's classes.
_ANONYMOUS = "value"


class Declarations(msgspec.Struct):
    """What headers declare. Unions are among the structs."""

    functions: dict[str, Signature] = {}
    structs: dict[str, StructLayout] = {}
    constants: dict[str, int] = {}

    def abi(self, release: str, known: EngineAbi) -> EngineAbi:
        """Return those of these declarations that `known` has, with the layouts that they have here."""
        return EngineAbi(
            release=release,
            functions={name: self.functions[name] for name in known.functions if name in self.functions},
            structs={name: self.structs[name] for name in known.structs if name in self.structs},
            fixed=known.fixed,
            optional=known.optional,
            constants={name: self.constants[name] for name in known.constants if name in self.constants},
        )


def read_headers(texts: Sequence[str]) -> Declarations:
    """Read the texts of headers, each after those that it includes. Raise CannotRead if they can't be read at all."""
    macros: dict[str, Macro] = {}
    tokens = [token for text in texts for token in tokens_of(text, macros)]
    return _DeclarationReader().read(tokens, macros)


class _DeclarationReader:
    def __init__(self) -> None:
        self.found = Declarations()
        self._typedefs: dict[str, str] = dict(_TYPES)
        # By name, "struct", "union" or "enum": C++ may leave that word out where the name is used.
        self._tags: dict[str, str] = {}
        self._enums: set[str] = set()

    def read(self, tokens: Sequence[str], macros: Mapping[str, Macro]) -> Declarations:
        for declaration in _declarations(tokens):
            try:
                self._declare(declaration)
            except CannotRead:
                continue
        for name, macro in macros.items():
            try:
                self.found.constants.setdefault(name, value_of(macro.body, self.found.constants))
            except CannotRead:
                continue
        return self.found

    def _declare(self, tokens: list[str]) -> None:
        is_typedef = tokens[0] == "typedef"
        cursor = _Cursor(tokens[is_typedef:])
        base = self._specifiers(cursor)
        while not cursor.is_at_end and cursor.next() != "=":
            name, text, signature = self._declarator(cursor, base)
            if is_typedef:
                self._typedefs[name] = text
            elif signature is not None:
                self.found.functions[name] = signature
            if not cursor.accept(","):
                return

    def _specifiers(self, cursor: "_Cursor", inside: str = "") -> str:
        """Read the type before the declarators, and what it defines. `inside` is the struct around an anonymous one."""
        words: list[str] = []
        text = ""
        while not cursor.is_at_end:
            token = cursor.next()
            if token in _IGNORED:
                cursor.take()
            elif token in _KINDS and not words and not text:
                text = self._tagged(cursor, inside)
            elif token in _TYPE_WORDS and not text:
                words.append(cursor.take())
            elif token.isidentifier() and not words and not text:
                cursor.take()
                kind = self._tags.get(token)
                text = self._typedefs.get(token) or (f"{kind} {token}" if kind else token)
            else:
                break
        if words:
            # "long int" and "int long" are "long"; "signed" says nothing but for char.
            short = [word for word in words if word not in ("int", "signed") or words in (["int"], ["signed", "char"])]
            text = _TYPES.get(" ".join(short or ["int"]), "")
        if not text:
            raise CannotRead(" ".join(words))
        return text

    def _tagged(self, cursor: "_Cursor", inside: str) -> str:
        """Read "struct NAME", "union NAME" or "enum NAME", with the definition if there is one."""
        kind = cursor.take()
        name = cursor.take() if not cursor.is_at_end and cursor.next().isidentifier() else ""
        body = cursor.take_brackets() if cursor.is_before("{") else None
        # An attribute before the name or behind the definition may pack the fields.
        if name.startswith("__") or (body is None and not name) or cursor.is_before("__attribute__"):
            raise CannotRead(name)
        name = name or (f"{inside}.{_ANONYMOUS}" if inside else f"{kind} {len(self._tags)}")
        self._tags[name] = kind
        if body is not None:
            if CONDITION in body:
                raise CannotRead(f"{name} differs between builds")
            if kind == "enum":
                self._define_enum(name, body)
            else:
                self.found.structs[name] = self._layout(name, body, is_union=kind == "union")
        return f"{kind} {name}"

    def _define_enum(self, name: str, body: list[str]) -> None:
        value = -1
        for item in filter(None, split(body, ",")):
            value = value_of(item[2:], self.found.constants) if item[1:2] == ["="] else value + 1
            if len(item) == 2 or not -(2**31) <= value < 2**32:
                raise CannotRead(item[0])
            self.found.constants[item[0]] = value
        self._enums.add(name)

    def _layout(self, name: str, body: list[str], *, is_union: bool) -> StructLayout:
        fields: list[Field] = []
        size, alignment = 0, 1
        for field, text in self._members(name, body):
            n_bytes, its_alignment = self._size_of(text), self._alignment_of(text)
            offset = 0 if is_union else _aligned(size, its_alignment)
            fields.append(Field(field, text, offset, n_bytes))
            size, alignment = max(size, offset + n_bytes), max(alignment, its_alignment)
        return StructLayout(_aligned(size, alignment), tuple(fields))

    def _members(self, name: str, body: list[str]) -> Iterator[tuple[str, str]]:
        """Yield the name and the type of each field."""
        for declaration in filter(None, split(body, ";")):
            cursor = _Cursor(declaration)
            base = self._specifiers(cursor, inside=name)
            if cursor.is_at_end:
                yield _ANONYMOUS, base
            while not cursor.is_at_end:
                field, text, signature = self._declarator(cursor, base)
                if signature is not None or not field or not (cursor.accept(",") or cursor.is_at_end):
                    raise CannotRead(f"{name}.{field}")
                yield field, text

    def _declarator(self, cursor: "_Cursor", base: str) -> tuple[str, str, Signature | None]:
        """Read a name with the stars before it and the brackets behind it. Return name, type and, of a function, its
        signature; the name is "" where C allows to leave it out.
        """
        text = _with_stars(base, cursor.take_stars())
        if cursor.is_before("("):
            inner = _Cursor(cursor.take_brackets())
            stars = inner.take_stars()
            name = "" if inner.is_at_end else inner.take()
            if not stars or not inner.is_at_end or not cursor.is_before("("):
                raise CannotRead("a declarator in brackets")
            parameters = ", ".join(self._parameters(cursor.take_brackets()))
            return name, f"{text} ({stars})({parameters})", None
        name = cursor.take() if not cursor.is_at_end and cursor.next().isidentifier() else ""
        if cursor.is_before("("):
            return name, text, Signature(text, self._parameters(cursor.take_brackets()))
        lengths = []
        while cursor.is_before("["):
            lengths.append(cursor.take_brackets())
        counts = [str(value_of(length, self.found.constants)) if length else "" for length in lengths]
        return name, text + "".join(f"[{count}]" for count in counts), None

    def _parameters(self, tokens: list[str]) -> tuple[str, ...]:
        if tokens in ([], ["void"]):
            return ()
        return tuple(self._parameter(part) for part in split(tokens, ","))

    def _parameter(self, tokens: list[str]) -> str:
        if tokens == ["..."]:
            return "..."
        cursor = _Cursor(tokens)
        _, text, signature = self._declarator(cursor, self._specifiers(cursor))
        if signature is not None or not cursor.is_at_end:
            raise CannotRead("a parameter")
        element, bracket, _ = text.partition("[")
        return _with_stars(element, "*") if bracket else text

    def _size_of(self, text: str) -> int:
        if text.endswith("*") or "(*" in text:
            return _POINTER_BYTES
        if text.endswith("]"):
            element, _, count = text[:-1].rpartition("[")
            return self._size_of(element) * int(count or "0")
        kind, _, name = text.partition(" ")
        if kind == "enum" and name in self._enums:
            return _ENUM_BYTES
        if kind in ("struct", "union") and name in self.found.structs:
            return self.found.structs[name].size
        if text not in _SIZES:
            raise CannotRead(text)
        return _SIZES[text]

    def _alignment_of(self, text: str) -> int:
        if text.endswith("]"):
            return self._alignment_of(text[:-1].rpartition("[")[0])
        kind, _, name = text.partition(" ")
        if kind in ("struct", "union") and name in self.found.structs:
            return max((self._alignment_of(field.type) for field in self.found.structs[name].fields), default=1)
        return self._size_of(text)


class _Cursor:
    """A place in the tokens of one declaration. Taking from its end raises CannotRead."""

    def __init__(self, tokens: Sequence[str]) -> None:
        self._tokens = list(tokens)
        self._position = 0

    @property
    def is_at_end(self) -> bool:
        return self._position >= len(self._tokens)

    def next(self) -> str:
        if self.is_at_end:
            raise CannotRead("an incomplete declaration")
        return self._tokens[self._position]

    def take(self) -> str:
        token = self.next()
        self._position += 1
        return token

    def is_before(self, token: str) -> bool:
        return not self.is_at_end and self.next() == token

    def accept(self, token: str) -> bool:
        """Take `token` if it comes next. Return whether it did."""
        is_next = self.is_before(token)
        self._position += is_next
        return is_next

    def take_stars(self) -> str:
        stars = ""
        while not self.is_at_end and (self.next() == "*" or self.next() in _IGNORED):
            token = self.take()
            stars += token if token == "*" else ""
        return stars

    def take_brackets(self) -> list[str]:
        """Take a bracket and all up to the one that closes it. Return what is between them."""
        end = closing(self._tokens, self._position)
        inside = self._tokens[self._position + 1 : end]
        self._position = end + 1
        return inside


def _declarations(tokens: Sequence[str]) -> Iterator[list[str]]:
    """Yield the tokens of each declaration, without its semicolon. Bodies of functions are left out."""
    current: list[str] = []
    position = 0
    while position < len(tokens):
        token = tokens[position]
        position += 1
        if token == ";":
            if current:
                yield current
            current = []
        elif token == "{" and current == ["extern", '"C"']:
            current = []
        elif token in ("{", "("):
            end = closing(tokens, position - 1)
            is_body = token == "{" and ("(" in current or not {*_KINDS} & {*current})
            current = [] if is_body else [*current, *tokens[position - 1 : end + 1]]
            position = end + 1
        elif current or token not in (CONDITION, "}"):
            current.append(token)


def _aligned(offset: int, alignment: int) -> int:
    return -(-offset // alignment) * alignment


def _with_stars(text: str, stars: str) -> str:
    if not stars:
        return text
    return text + stars if text.endswith("*") else f"{text} {stars}"
