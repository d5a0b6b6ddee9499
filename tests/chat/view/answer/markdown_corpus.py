"""A corpus of huge and hostile Markdown: 119 shapes, each at any size.

`corpus(1.0)` is what `bench.ui_markdown` measures and the soak test opens; the normal suite takes a tenth of it.
"""

from collections.abc import Callable

WORDS = "The quick brown fox jumps over the lazy dog and runs away from the river. "
_HEBREW = "שלום עולם זה טקסט בעברית שנמשך עוד קצת. "
_ARABIC = "مرحبا بالعالم هذا نص باللغة العربية يستمر قليلا. "
_CHINESE = "这是一个没有空格的中文句子，它一直写下去直到这一行结束为止。"
_FAMILY = "\U0001f468\u200d\U0001f469\u200d\U0001f467\u200d\U0001f466"
_DELIMITERS = "|---|---|---|\n"

Shape = Callable[[int], str]
"""Makes a text from a number of rows, items or repetitions."""


def _lines(row: str) -> Shape:
    """Rows in which {0} stands for the row's number."""
    return lambda count: "".join(row.replace("{0}", str(number)) for number in range(count))


def _table(columns: int, cell: str = "cell {0}") -> Shape:
    def shape(rows: int) -> str:
        head = "|" + "".join(f" column {number} |" for number in range(columns)) + "\n"
        return head + "|" + "---|" * columns + "\n" + _lines("|" + f" {cell} |" * columns + "\n")(rows)

    return shape


def _fence(language: str, line: str) -> Shape:
    return lambda count: f"```{language}\n{_lines(line)(count)}```\n"


def _deep(mark: str, text: str = "x") -> Shape:
    """Each line one level deeper than the one above."""
    return lambda count: "\n".join(f"{mark * depth} {text} {depth}" for depth in range(1, count + 1))


def _around(opening: str, closing: str = "") -> Shape:
    return lambda count: opening * count + "text" + closing * count


def _run(piece: str) -> Shape:
    return lambda count: piece * count


_SHAPES: dict[str, tuple[Shape, int]] = {
    # lists
    "task-items": (_lines("- [ ] task {0}\n"), 20_000),
    "task-items-done": (_lines("- [x] **task** {0} with `code`\n"), 5_000),
    "bullets": (_lines("- item {0}\n"), 20_000),
    "bullets-empty": (_lines("-\n"), 8_000),
    "bullets-loose": (_lines("- item {0}\n\n"), 8_000),
    "bullets-long": (_lines("- " + WORDS * 12 + "\n"), 500),
    "bullets-mixed-marks": (_lines("- one {0}\n* two\n+ three\n"), 4_000),
    "bullets-of-paragraphs": (_lines("- item {0}\n\n  " + WORDS + "\n\n  " + WORDS + "\n\n"), 1_500),
    "bullets-of-fences": (_lines("- item {0}\n\n  ```python\n  x = {0}\n  ```\n\n"), 3_000),
    "bullets-of-tables": (_lines("- item {0}\n\n  | a | b |\n  |---|---|\n  | 1 | {0} |\n\n"), 2_000),
    "bullets-of-quotes": (_lines("- item {0}\n\n  > quoted {0}\n\n"), 3_000),
    "bullets-nested": (_lines("- one {0}\n  - two\n    - three\n      - four\n"), 4_000),
    "bullets-deep": (lambda count: "\n".join("  " * depth + "- x" for depth in range(count)), 400),
    "bullets-deep-again": (lambda count: "".join("  " * (n % 12) + f"- item {n}\n" for n in range(count)), 10_000),
    "bullets-in-one-line": (_run("- "), 4_000),
    "bullets-huge-item": (lambda count: "- " + _lines("line {0} of one item\n  ")(count), 8_000),
    "bullets-one-item-of-blocks": (lambda count: "- item\n\n" + _lines("  paragraph {0}\n\n")(count), 4_000),
    "numbers": (_lines("{0}. item\n"), 20_000),
    "numbers-same": (_lines("1. item {0}\n"), 10_000),
    "numbers-huge": (_lines("999999999. item {0}\n"), 5_000),
    "numbers-nested": (_lines("1. one {0}\n   1. two\n      1. three\n"), 3_000),
    "numbers-with-bullets": (_lines("1. one {0}\n   - two\n   - three\n"), 4_000),
    # quotes
    "quotes": (_lines("> quoted line {0}\n"), 10_000),
    "quotes-apart": (_lines("> quoted {0}\n\n"), 8_000),
    "quotes-deep": (_deep(">"), 300),
    "quotes-deep-at-once": (_lines("> > > > > > > > quoted {0}\n"), 4_000),
    "quotes-alternating": (lambda count: "".join(">" * (n % 9 + 1) + f" text {n}\n\n" for n in range(count)), 4_000),
    "quotes-of-lists": (_lines("> - item {0}\n"), 8_000),
    "quotes-of-fences": (_lines("> ```\n> code {0}\n> ```\n>\n"), 3_000),
    "quotes-of-tables": (lambda count: "> | a | b |\n> |---|---|\n" + _lines("> | 1 | {0} |\n")(count), 4_000),
    "quotes-in-one-line": (_run("> "), 4_000),
    # tables
    "table-rows": (_table(3), 20_000),
    "table-columns": (_table(300), 40),
    "table-columns-3000": (_table(3_000, "x"), 2),
    "table-long-cells": (_table(4, WORDS * 6), 200),
    "table-of-marks": (_table(4, "**b** `c` [l](https://example.org/{0})"), 2_000),
    "table-of-formulas": (_table(3, "$x_{0}$"), 600),
    "table-empty-cells": (_table(20, ""), 1_000),
    "table-ragged": (
        lambda count: "| a | b | c |\n" + _DELIMITERS + _lines("| {0} |\n| 1 | 2 | 3 | 4 |\n")(count),
        4_000,
    ),
    "table-aligned": (lambda count: "| a | b |\n|:-:|--:|\n" + _lines("| {0} | right |\n")(count), 4_000),
    "table-one-column": (_table(1), 8_000),
    "table-escaped-bars": (_table(3, "a \\| b"), 4_000),
    "tables": (_lines("| a | b |\n|---|---|\n| 1 | {0} |\n\n"), 5_000),
    "table-heads": (_lines("| a | b |\n|---|---|\n\n"), 5_000),
    "table-bars": (_run("|"), 12_000),
    "table-rtl": (_table(3, _HEBREW), 1_000),
    # code
    "fences": (_lines("```python\nx = {0}\n```\n\n"), 20_000),
    "fences-tight": (_lines("```\n{0}\n```\n"), 20_000),
    "fences-empty": (_run("```\n```\n"), 10_000),
    "fences-empty-open": (_run("```\n"), 9_999),
    "fences-tilde": (_lines("~~~js\nlet x = {0};\n~~~\n\n"), 5_000),
    "fence-python": (_fence("python", "value_{0} = compute({0}, 'text')  # comment\n"), 8_000),
    "fence-plain": (_fence("", "line {0}\n"), 20_000),
    "fence-blank-lines": (_fence("", "\n"), 40_000),
    "fence-one-line": (lambda count: "```python\n" + "x" * count + "\n```\n", 100_000),
    "fence-one-line-of-words": (lambda count: "```\n" + WORDS * count + "\n```\n", 2_000),
    "fence-long-lines": (_fence("json", '{"key": "' + "value " * 150 + '"},\n'), 200),
    "fence-string": (lambda count: '```python\nx = """\n' + "text\n" * count + '"""\n```\n', 10_000),
    "fence-tabs": (_fence("c", "\t\t\t\tint x{0};\n"), 8_000),
    "fence-brackets": (_fence("c", "((((((((((((((((((((\n"), 4_000),
    "fence-emoji": (_fence("", _FAMILY * 10 + "\n"), 1_000),
    "fence-unknown": (_fence("no-such-language", "some words {0}\n"), 8_000),
    "fence-never-closed": (lambda count: "```python\n" + _lines("x = {0}\n")(count), 20_000),
    "code-indented": (_lines("    x = {0}\n"), 10_000),
    "code-spans": (_run("`a` "), 20_000),
    "code-spans-unclosed": (lambda count: " ".join("`" * (n % 50 + 1) + "a" for n in range(count)), 2_000),
    # paragraphs and lines
    "paragraphs": (_lines("Paragraph {0}. " + WORDS + "\n\n"), 5_000),
    "paragraphs-short": (_lines("{0}\n\n"), 20_000),
    "paragraph-long": (_run(WORDS), 6_000),
    "paragraph-of-lines": (_lines("line {0}\n"), 20_000),
    "paragraph-hard-breaks": (_lines("line {0}  \n"), 10_000),
    "word-long": (_run("x"), 400_000),
    "spaces": (_run(" "), 200_000),
    "blank-lines": (_run("\n"), 200_000),
    "headings": (_lines("# Heading {0}\n"), 10_000),
    "headings-underlined": (_lines("Heading {0}\n===\n\n"), 5_000),
    "rules": (_run("---\n\n"), 8_000),
    "marks-one-each": (_lines("{0} *a* _b_ **c** ~~d~~ `e` $f$ [g](h) <i>\n\n"), 3_000),
    # inside a line
    "bold-runs": (_run("**bold** plain "), 10_000),
    "emphasis-nested": (_around("*a ", " b*"), 4_000),
    "emphasis-unclosed": (_run("*a **b ***c "), 6_000),
    "stars": (_run("*"), 60_000),
    "underscores": (_run("_a_b"), 20_000),
    "strike": (_run("~~a~~ "), 10_000),
    "links": (_lines("[link {0}](https://example.org/{0}) "), 8_000),
    "links-nested": (_around("[", "](https://example.org)"), 4_000),
    "links-unclosed": (_run("[a]("), 20_000),
    "links-bare": (_lines("https://example.org/{0} "), 8_000),
    "links-by-reference": (
        lambda n: _lines("[text {0}][r{0}] ")(n) + "\n\n" + _lines("[r{0}]: https://e.org/{0}\n")(n),
        3_000,
    ),
    "brackets": (_run("["), 60_000),
    "pictures": (_lines("![picture {0}](https://example.org/{0}.png)\n\n"), 4_000),
    "escapes": (_run("\\*\\_\\["), 20_000),
    "entities": (_run("&amp;&lt;&#64; "), 10_000),
    "html-blocks": (_lines("<div><b>{0}</b><script>alert({0})</script></div>\n\n"), 4_000),
    "html-inline": (_run("<b>bold</b> <!-- comment --> "), 8_000),
    "html-open": (_run("<a href='"), 20_000),
    # footnotes and formulas
    "footnotes": (lambda n: _lines("Claim[^{0}]. ")(n) + "\n\n" + _lines("[^{0}]: Text {0}.\n\n")(n), 4_000),
    "footnotes-undefined": (_lines("[^{0}] "), 10_000),
    "formulas": (_lines("So $x_{{0}}^2 + y = \\frac{1}{{0}}$ holds.\n\n"), 600),
    "formulas-same": (_run("$a^2 + b^2 = c^2$ and "), 6_000),
    "formulas-displayed": (_lines("$$\nx_{{0}} = \\sqrt{{0}}\n$$\n\n"), 600),
    "formulas-brackets": (_lines("\\[\nx_{{0}}\n\\]\n\nand \\(y_{{0}}\\).\n\n"), 400),
    "formula-huge": (lambda count: "$$\n" + "x + " * count + "x\n$$", 20_000),
    "dollars": (_run("$"), 40_000),
    # scripts
    "hebrew": (_run(_HEBREW), 4_000),
    "arabic": (_lines(_ARABIC * 4 + "\n\n"), 800),
    "chinese": (_run(_CHINESE), 4_000),
    "scripts-mixed": (_run(WORDS + _HEBREW + _ARABIC + _CHINESE), 1_500),
    "direction-marks": (_run("\u202eabc\u202c \u2066def\u2069 "), 8_000),
    "emoji": (_run(_FAMILY + " "), 8_000),
    "emoji-long": (_run("\U0001f468\u200d"), 20_000),
    "combining": (_run("e" + "\u0301" * 8), 10_000),
    "combining-only": (_run("\u0301"), 60_000),
    "zero-width": (_run("a\u200b\u200d\ufeff"), 30_000),
    "separators": (_run("a\u2028b\u2029c\x0b\x0c"), 20_000),
    "nulls": (_run("\0a"), 40_000),
    "object-marks": (_run("\ufffc"), 40_000),
    "tabs": (_run("\ta"), 40_000),
    "carriage-returns": (_lines("line {0}\r\n\r\n"), 8_000),
}


def corpus(size: float = 1.0) -> dict[str, str]:
    """Every shape's text by its name, `size` times as long as the largest."""
    return {name: shape(max(1, round(count * size))) for name, (shape, count) in _SHAPES.items()}
