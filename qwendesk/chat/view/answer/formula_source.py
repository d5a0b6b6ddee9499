r"""Rewrites LaTeX as models write it into the part of it that latex2mathml and ziamath draw. Pure Python, no Qt.

Both drop in silence what they don't know: `\mathop{...}`, what stands behind a percent sign, a text with brackets.
What can't be rewritten is refused here or by `is_complete`, and is then shown as its source.
"""

import re
from typing import Final
from xml.etree.ElementTree import Element

import msgspec

# Environments, and what draws the same; "" is none.
_ENVIRONMENTS: Final = {
    **dict.fromkeys(("equation", "equation*", "displaymath", "math"), ""),
    **dict.fromkeys(
        ("align", "align*", "aligned", "alignat", "alignat*", "alignedat", "flalign", "flalign*"), "align*"
    ),
    **dict.fromkeys(("eqnarray", "eqnarray*", "split"), "align*"),
    **dict.fromkeys(("gather", "gather*", "gathered", "multline", "multline*"), "matrix"),
    **{name: name for name in ("array", "cases", "smallmatrix")},
    **{f"{kind}matrix{star}": f"{kind}matrix{star}" for kind in ("", "p", "b", "B", "v", "V") for star in ("", "*")},
    "dcases": "cases",
    "darray": "array",
}
_TEXT = re.compile(r"(\\(?:text(?:bf|it|rm|sf|tt|normal|up|md)?|mbox|hbox|fbox|emph))\s*\{")
_NO_PLAIN_TEXT = re.compile(r"\\(?![%$_#&{} ])|(?<!\\)[{}]")
_ESCAPED = re.compile(r"\\([%$_#&{} ])")
# In a text, latex2mathml reads these as a comment, as XML or as its end. References pass through.
_REFERENCES = str.maketrans({each: f"&#{ord(each)};" for each in "%&<>{}$"} | {" ": f"&#{0xA0};"})
# latex2mathml drops the others in the name of an operator.
_THIN_SPACE = "\u2009"
_PERCENT = re.compile(r"(?<=\d)(\s*)%")
_COMMENT = re.compile(r"(?<!\\)%")
_NAME = r"[a-zA-Z]+(?:(?:\\[,; ]|[ ~])[a-zA-Z]+)*"
_SUBSTITUTES: Final = tuple(
    (re.compile(pattern), substitute)
    for pattern, substitute in (
        # the number of column pairs, the space between columns or below a row
        (r"(\\begin\s*\{align(?:at\*?|edat)\})\s*\{\d+\}", r"\1"),
        (r"[@!]\{[^{}]*\}", ""),
        (r"\\\\\s*\[\s*-?[\d.]+\s*(?:pt|em|ex|mm|cm|in|mu|px)\s*\]", r"\\\\ "),
        (r"\\\\\*", r"\\\\ "),
        # what is never seen in print
        (r"\\label\s*\{[^{}]*\}|\\(?:nonumber|notag|allowbreak|nobreak)(?![a-zA-Z])", ""),
        (r"\\tag\*\s*\{([^{}]*)\}", r"\\qquad\\text{\1}"),
        (r"\\tag\s*\{([^{}]*)\}", r"\\qquad\\text{(\1)}"),
        # the class of a symbol, by which ziamath would drop it
        (r"\\math(?:rel|bin|ord|open|close|punct|inner)(?![a-zA-Z])", ""),
        (r"\\mathop\s*\{\s*(\\[a-zA-Z]+)\s*\}(?:\s*\\limits)?", r"\1"),
        (rf"\\mathop\s*\{{\s*(?:\\(?:rm|mathrm|text|textrm|operatorname)\s*)?\{{?\s*({_NAME})\s*\}}?\s*\}}(?:\s*\\limits)?",
         r"\\operatorname*{\1}"),
        (rf"(\\operatorname\*?)\s*\{{\s*\\(?:mathrm|text|rm)\s*\{{\s*({_NAME})\s*\}}\s*\}}", r"\1{\2}"),
        (r"(\\operatorname\*?\s*\{[a-zA-Z]+)(?:\\[,; ]|[ ~])+([a-zA-Z]+\s*\})", f"\\1{_THIN_SPACE}\\2"),
        (r"\\begin\s*\{rcases\}", r"\\left.\\begin{array}{ll}"),
        (r"\\end\s*\{rcases\}", r"\\end{array}\\right\\}"),
    )
)  # fmt: skip
_BINOMIAL = re.compile(r"\\binom\s*\{")
_OPENING = re.compile(r"\s*\{")
_UNKNOWN_COMMAND = re.compile(r"\\[a-zA-Z]")
_LEAVES: Final = frozenset(("mi", "mn", "mo", "mtext"))


def drawable_latex(source: str) -> str | None:
    """Return LaTeX that draws the same and holds only what latex2mathml knows; None if something would be lost."""
    text = _PERCENT.sub(r"\1\\%", source)
    if _COMMENT.search(text):
        return None
    for pattern, substitute in _SUBSTITUTES:
        text = pattern.sub(substitute, text)
    with_texts = _with_plain_texts(_with_binomials(text))
    with_tables = None if with_texts is None else _with_known_tables(with_texts)
    return None if with_tables is None else re.sub(r"[ \t\r\n]+", " ", with_tables).strip()


def _with_binomials(source: str) -> str:
    r"""Return `source` with "\binom{n}{k}" as brackets around two lines. ziamath would cut "\binom{n}{k_{1}}"."""
    while (found := _BINOMIAL.search(source)) is not None:
        middle = _closing_bracket(source, found.end())
        second = _OPENING.match(source, middle + 1)
        if second is None:
            source = f"{source[: found.start()]}\\tbinom{source[found.end() - 1 :]}"
            continue
        end = _closing_bracket(source, second.end())
        lines = f"{{{source[found.end() : middle]}}}\\atop {{{source[second.end() : end]}}}"
        source = f"{source[: found.start()]}\\left({lines}\\right){source[end + 1 :]}"
    return source


def _with_plain_texts(source: str) -> str | None:
    r"""Return `source` with the formulas inside \text outside of it; None if a text holds a command or brackets."""
    parts: list[str] = []
    end = 0
    while (found := _TEXT.search(source, end)) is not None:
        parts.append(source[end : found.start()])
        end = _closing_bracket(source, found.end())
        for number, part in enumerate(re.split(r"(?<!\\)\$", source[found.end() : end])):
            if number % 2:
                parts.append(f"{{{part}}}")
            elif _NO_PLAIN_TEXT.search(part):
                return None
            elif part:
                plain = _ESCAPED.sub(r"\1", part).translate(_REFERENCES)
                parts.append(f"{found[1]}{{{plain}}}")
        end += 1
    return "".join(parts) + source[end:]


def _closing_bracket(source: str, start: int) -> int:
    """Return where the bracket closes that was opened before `start`, or the end of `source`."""
    depth = 1
    for at in range(start, len(source)):
        if source[at] in "{}" and source[at - 1] != "\\":
            depth += 1 if source[at] == "{" else -1
            if not depth:
                return at
    return len(source)


class _Table(msgspec.Struct):
    """An environment that is being read: where it begins in the result, and its lines so far."""

    place: int
    depth: int
    n_rows: int = 0
    rows: set[int] = msgspec.field(default_factory=set)
    columns: set[int] = msgspec.field(default_factory=set)


_TABLE_TOKEN = re.compile(
    r"\\begin\s*\{(?P<begin>[^{}]+)\}(?:\s*\{(?P<columns>[lcr|\s]+)\})?|\\end\s*\{(?P<end>[^{}]+)\}|"
    r"(?P<row>\\\\)|(?P<line>\\hline(?![a-zA-Z]))|(?P<escaped>\\[{}])|(?P<bracket>[{}])"
)


def _with_known_tables(source: str) -> str | None:
    r"""Return `source` with environments that latex2mathml knows, and the lines of each table in a \class before it.

    latex2mathml's own attributes for lines don't tell a line above a row from one above the next. Return None for an
    unknown environment.
    """
    parts: list[str] = []
    tables: list[_Table] = []
    depth = end = 0
    for found in _TABLE_TOKEN.finditer(source):
        parts.append(source[end : found.start()])
        end = found.end()
        name: str = found["begin"] or found["end"] or ""
        if name and name not in _ENVIRONMENTS:
            return None
        if found["begin"]:
            tables.append(_Table(len(parts), depth))
            columns = found["columns"] or ""
            letters = ""
            for each in columns:
                if each == "|":
                    tables[-1].columns.add(len(letters))
                letters += each if each in "lcr" else ""
            known = _ENVIRONMENTS[name]
            parts += ["", f"\\begin{{{known}}}" + (f"{{{letters}}}" if letters else "") if known else ""]
        elif found["end"]:
            table = tables.pop() if tables else _Table(0, 0)
            parts.append(f"\\end{{{_ENVIRONMENTS[name]}}}" if _ENVIRONMENTS[name] else "")
            if table.rows or table.columns:
                rows, columns = (".".join(map(str, sorted(each))) for each in (table.rows, table.columns))
                parts[table.place] = f"\\class{{{rows}/{columns}}}"
        elif found["line"] and tables:
            tables[-1].rows.add(tables[-1].n_rows)
        else:
            if found["row"] and tables and tables[-1].depth == depth:
                tables[-1].n_rows += 1
            depth += {"{": 1, "}": -1}.get(found["bracket"] or "", 0)
            parts.append(found[0])
    return "".join(parts) + source[end:]


def lines_of(table: Element) -> tuple[frozenset[int], frozenset[int]]:
    """Return before which rows and columns of a MathML table a line is drawn; their number stands for the end."""
    rows, _, columns = table.get("class", "").partition("/")
    return frozenset(map(int, rows.split(".") if rows else ())), frozenset(
        map(int, columns.split(".") if columns else ())
    )


def is_complete(formula: Element) -> bool:
    """Return True if ziamath draws all of this MathML.

    It draws only the text of a leaf, no elements in it, and latex2mathml makes a leaf of an unknown command.
    """
    for element in formula.iter():
        name = element.tag.rpartition("}")[2]
        if name in _LEAVES and (len(element) or _UNKNOWN_COMMAND.search(element.text or "")):
            return False
        if (name == "mspace" and element.get("mathbackground")) or element.get("rowlines"):
            return False
    return True
