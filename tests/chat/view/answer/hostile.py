"""A corpus of more than 300 hostile answers, each with a name, generated from a table."""

from collections.abc import Iterator

_HTML = (
    "<script>alert(1)</script>",
    "<img src=http://192.0.2.1/x.png onerror=alert(1)>",
    "<iframe src='file:///etc/passwd'>",
    "<a href='javascript:alert(1)'>x</a>",
    "<style>*{display:none}</style>",
    "<svg onload=alert(1)>",
    "<object data='http://192.0.2.1'>",
    "<link rel=stylesheet href=//192.0.2.1/a.css>",
    "<meta http-equiv=refresh content='0;url=http://192.0.2.1'>",
    "<base href=http://192.0.2.1>",
    "<table><tr><td width=999999999>",
    "<font size=99999999>big</font>",
    "<img src='qrc:/x'>",
    "<input autofocus onfocus=alert(1)>",
    "<!-- x --><![CDATA[x]]>",
)
_SCHEMES = (
    "javascript:alert(1)",
    "JaVaScRiPt:alert(1)",
    "file:///etc/passwd",
    "FILE:///C:/x",
    "data:text/html;base64,PHNjcmlwdD4=",
    "vbscript:x",
    "ftp://192.0.2.1/x",
    "smb://192.0.2.1/x",
    "\\\\192.0.2.1\\share",
    "//192.0.2.1/x",
    "qrc:/a",
    "tel:1",
    "ms-settings:x",
    "about:blank",
    " javascript:alert(1)",
    "java\tscript:alert(1)",
    "&#106;avascript:alert(1)",
    "%6Aavascript:alert(1)",
    "#top",
    "mailto:a@b.example",
)
_FRAMES = (
    "[x]({0})",
    "![x]({0})",
    "[x][r]\n\n[r]: {0}",
    "<{0}>",
    "[![x]({0})]({0})",
    "**[x]({0})**",
    "| [x]({0}) |\n|---|\n| ![x]({0}) |",
)
_REPEATED = (
    "http://",
    "a://b ",
    "https://e.org/(",
    "[",
    "]",
    "![",
    "*",
    "_",
    "**a",
    "~~",
    "`",
    "``` ",
    "$",
    "$$",
    "\\(",
    "\\[\n",
    "> ",
    "- ",
    "1. ",
    "# ",
    "|",
    "|-",
    "\\",
    "&amp;",
    "&#0;",
    "<",
    "[^a]",
    "[^a]: x\n\n",
    "\u202e",
    "\u0301",
    "\U0001f468\u200d",
    "\ufffc",
    "\0",
    "\t",
    "  \n",
    "a\u2028",
    "[a](",
    "{",
    "}",
    "^{",
    "\\frac{",
)
_FORMULAS = (
    r"\frac{" * 40 + "x" + "}" * 40,
    r"\sqrt" * 60 + "x",
    "x^{" * 30 + "y" + "}" * 30,
    r"\left(" * 30 + "x" + r"\right)" * 30,
    r"\begin{matrix}" + "a&" * 400 + r"\end{matrix}",
    "a" * 50_000,
    r"\def\x{\x\x}\x",
    r"\newcommand{\a}{\a\a}\a",
    r"\input{/etc/passwd}",
    r"\includegraphics{http://192.0.2.1/x.png}",
    r"\href{javascript:alert(1)}{x}",
    r"\rule{99999em}{99999em}",
    r"\hspace{1000000cm}x",
    r"\text{" + "x" * 2000 + "}",
    r"\begin{array}{" + "c" * 3000 + "}x",
    r"\color{url(http://192.0.2.1)}x",
    r"\unknown{x}",
    "}{",
    r"\\\\\\",
    "&&&&",
    r"\hat" * 20 + "x",
    r"\underbrace{" * 12 + "x" + "}" * 12,
    "_^_^_^",
    r"\frac",
    r"\begin{",
    r"\end{x}",
    "<svg><image href='file:///x'/></svg>",
    "\u202e\u0000x",
    r"\mathbb{" * 9 + "x" + "}" * 9,
    r"\stackrel{a}{b}" * 40,
)
_LONG = 12_000


def hostile_inputs() -> Iterator[tuple[str, str]]:
    """Name and text of each."""
    for number, html in enumerate(_HTML):
        yield f"html-{number}", html
        yield f"html-in-list-{number}", f"- {html}\n\n  {html}"
    for number, scheme in enumerate(_SCHEMES):
        for kind, frame in enumerate(_FRAMES):
            yield f"link-{number}-{kind}", frame.replace("{0}", scheme)
    for number, piece in enumerate(_REPEATED):
        yield f"repeated-{number}", piece * (_LONG // len(piece))
        yield f"repeated-in-words-{number}", f"word {piece} " * (4_000 // len(piece))
    for number, formula in enumerate(_FORMULAS):
        yield f"formula-{number}", f"${formula}$"
        yield f"formula-displayed-{number}", f"$$\n{formula}\n$$"
    yield "table-wide", "|" + "a|" * 3_000 + "\n|" + "-|" * 3_000 + "\n|" + "b|" * 3_000
    yield "table-long", "|a|b|\n|-|-|\n" + "|1|2|\n" * 800
    yield "quotes-deep", "\n".join(">" * depth + " x" for depth in range(1, 200))
    yield "lists-deep", "\n".join("  " * depth + "- x" for depth in range(200))
    yield "one-line-of-code", "```python\n" + "x" * 60_000
    yield "language-long", "```" + "x" * 20_000 + "\ncode\n```"
    yield "number-huge", "999999999. x\n" * 3
    yield "footnotes-in-circles", "[^a] [^b]\n\n[^a]: [^b]\n\n[^b]: [^a]"
    yield "one-word", "x" * _LONG
    yield "blank-lines", "\n" * _LONG
