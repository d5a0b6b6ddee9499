"""Takes commands out of what stands around them in READMEs, forums and terminals.

That is prompts and output, fences, comments, typographic characters, commands before, and docker.
"""

import re
import shlex
from types import MappingProxyType

_PLAIN_CHARACTERS = MappingProxyType(
    {
        **dict.fromkeys(map(ord, "\u201c\u201d\u201e\u201f\u2033"), '"'),
        **dict.fromkeys(map(ord, "\u2018\u2019\u201a\u201b\u2032"), "'"),
        **dict.fromkeys((0xA0, 0x1680, *range(0x2000, 0x200B), 0x202F, 0x205F, 0x3000), " "),
        **dict.fromkeys(map(ord, "\u2010\u2011"), "-"),
        **dict.fromkeys((0x200B, 0x200C, 0x200D, 0x2060, 0xFEFF), ""),
    }
)
# A dash at the beginning of a flag, which a word processor made of one hyphen or of two.
_DASH = re.compile(r"(?<!\S)[\u2012-\u2015\u2212]+(?=[A-Za-z][\w-]*)")
_LONGEST_SHORT_FLAG = 3
_FENCE = re.compile(r"\s*(```|~~~)\s*[\w-]*\s*")
_QUOTED = re.compile(r"^\s*(>\s?)+(?=\S|$)")
_PROMPT = re.compile(
    r"""\s*(\([\w.-]+\)\s*)?(
        \[?[\w.-]+@[\w.-]+([: ][^$#%>\n]*)?[$#%>]\s  # user@pc:~$, [user@host folder]$, user@mac ~ %
        | PS\s[A-Za-z]:[^>\n]*>\s?
        | [A-Za-z]:\\[^>\n]*>\s?
        | [$%\u276f\u279c\u03bb]\s+
    )""",
    re.VERBOSE,
)
_COMMENT = re.compile(r"(?:^|\s)(?:#|::\s|REM\s)")
_CONTINUED = re.compile(r"(?<!\S)[\\^`]\s*$")
_WINDOWS_PATH = re.compile(r"(^|[\s\"'=])([A-Za-z]:\\|\.{1,2}\\)")
_REDIRECTION = re.compile(r"(\d?>>?|<)(.*)")
# Commands that may stand before the one that matters.
_BEFORE = frozenset(
    {"apt", "brew", "cd", "curl", "echo", "git", "mkdir", "pip", "pip3", "source", "sudo", "uv", "wget"}
)
_END_OF_COMMAND = frozenset({"&&", "||", ";", "|", "&"})


def read_commands(text: str) -> list[list[str]] | None:
    """Return the words of each command in a pasted text; None if there are lines of something else.

    Lines below a prompt are its output. Values that `export` and `set` give are words of the next command.
    """
    lines = plain_lines(text)
    has_prompts = any(_PROMPT.match(line) for line in lines)
    commands: list[list[str]] = []
    variables: list[str] = []
    for line in _joined(lines):
        prompt = _PROMPT.match(line)
        if has_prompts and prompt is None:
            continue
        for words in _split(line[prompt.end() :] if prompt is not None else line):
            if words[0] in ("export", "set"):
                variables += words[1:]
            else:
                commands.append([*variables, *words])
    may_be_output = has_prompts or len(commands) == 1
    return commands if may_be_output or sum(words[0] not in _BEFORE for words in commands) == 1 else None


def plain_lines(text: str) -> list[str]:
    """Return the lines of a pasted text that are no fences and no comments, with plain characters."""
    plain = _DASH.sub(_hyphens, text.translate(_PLAIN_CHARACTERS)).strip()
    if re.fullmatch(r"`[^`\n]+`", plain):
        plain = plain[1:-1]
    found = []
    for each in plain.splitlines():
        line = _QUOTED.sub("", each, count=1)
        if not _FENCE.fullmatch(line) and (command := _without_comment(line)).strip():
            found.append(command)
    return found


def _hyphens(dash: re.Match[str]) -> str:
    name = re.match(r"[\w-]*", dash.string[dash.end() :])
    return "-" if name is not None and len(name[0]) <= _LONGEST_SHORT_FLAG else "--"


def _without_comment(line: str) -> str:
    prompt = _PROMPT.match(line)
    for found in _COMMENT.finditer(line, prompt.end() if prompt is not None else 0):
        before = line[: found.start()]
        if before.count('"') % 2 == 0 and before.count("'") % 2 == 0:
            return before
    return line


def _joined(lines: list[str]) -> list[str]:
    """Join lines that are continued: by a character at their end, by an open quotation mark, or by a flag below."""
    found: list[str] = []
    is_open = False
    for line in lines:
        text = _CONTINUED.sub("", line)
        if found and (is_open or line.lstrip().startswith("-")):
            found[-1] += f" {text}"
        else:
            found.append(text)
        has_open_quote = found[-1].count('"') % 2 == 1 or found[-1].count("'") % 2 == 1
        is_open = text != line or has_open_quote
    return found


def _split(line: str) -> list[list[str]]:
    """Split a line of a Unix shell, cmd or PowerShell into commands and their words, without redirections."""
    lexer = shlex.shlex(line, posix=True, punctuation_chars=False)
    lexer.whitespace_split, lexer.commenters = True, ""
    if _WINDOWS_PATH.search(line):
        lexer.escape = ""  # the backslashes are those of Windows paths
    try:
        words = list(lexer)
    except ValueError:  # a quotation mark is not closed
        words = line.split()
    commands: list[list[str]] = [[]]
    is_file = False
    for word in words:
        redirection = _REDIRECTION.fullmatch(word)
        if word in _END_OF_COMMAND:
            commands.append([])
        elif redirection is not None and commands[-1]:
            is_file = not redirection[2]
        elif not is_file:
            commands[-1].append(word.removesuffix(";"))
            if word.endswith(";"):
                commands.append([])
        else:
            is_file = False
    return [words for words in commands if words]
