"""The page that shows HTML or SVG of an answer in the system's browser: it loads nothing and runs nothing.

What the model wrote may be what a hostile text told it to write, with something of the user in an address. So:

- The answer's text is only ever the value of one attribute, `srcdoc` of an iframe. Whatever it says, the page around it
  stays the same, with the policy as the first element of the head.
- The policy is the first element of the document in the frame too, which inherits the outer one in any case. A policy
  of the answer can only forbid more.
- A policy does not stop a page from going elsewhere: by <meta http-equiv=refresh>, a form, or a link. The frame's empty
  `sandbox` does: no scripts, forms, pop-ups or automatic refresh, and the page around can't be replaced. Where the
  frame itself would go is again forbidden by the policy.
- Neither stops a <link> that only looks up a name (dns-prefetch, preconnect), and names can tell something. A policy
  forbids all other links already, so none is left.
"""

import html
import re
from typing import Final

POLICY: Final = "default-src 'none'; img-src data:; style-src 'unsafe-inline'"
_MORE: Final = "base-uri 'none'; form-action 'none'"
_METAS: Final = (
    f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">'
    f'<meta http-equiv="Content-Security-Policy" content="{_MORE}">'
    '<meta charset="utf-8">'
    '<meta http-equiv="x-dns-prefetch-control" content="off">'
    '<meta name="referrer" content="no-referrer">'
)
_LINK: Final = re.compile(r"<(?=link(?:[\s/>]|\Z))", re.IGNORECASE)
_PROLOG: Final = re.compile(
    r"\A\s*+(?:<\?xml[^>]*+>\s*+)?(?:<!DOCTYPE\s[^>\[]*+(?:\[[^\]]*+\])?[^>]*+>\s*+)?", re.IGNORECASE
)
"""Nothing is tried twice, so that a long text without an end doesn't stop the window."""
_HTML, _SVG = ("html", "htm", "xhtml"), ("svg", "xml")


def is_page(language: str, text: str) -> bool:
    """Return whether code of an answer can be shown as a page; `language` is that of its fence."""
    name = language.lower()
    return name in _HTML or name == "svg" or (name == "xml" and _is_svg(text))


def page_of(text: str, language: str, title: str) -> str:
    """Return the page that shows HTML or SVG. Its bytes must be written as UTF-8, with the byte order mark it has."""
    text = text.removeprefix("\ufeff").encode("utf-8", "replace").decode("utf-8")
    if language.lower() in _SVG or _is_svg(text):
        # An HTML page may contain <svg>, but no XML declaration and no document type before it.
        text = f"<title>{html.escape(title)}</title><body>{_PROLOG.sub('', text)}"
    inner = f"<!doctype html><html><head>{_METAS}{_LINK.sub('<no-', text)}"
    return (
        f"\ufeff<!doctype html><html><head>{_METAS}<title>{html.escape(title)}</title>"
        "<style>html, body { margin: 0; height: 100%; background: white } "
        "iframe { display: block; width: 100%; height: 100%; border: 0 }</style></head>"
        f'<body><iframe sandbox="" srcdoc="{html.escape(inner)}"></iframe></body></html>\n'
    )


def _is_svg(text: str) -> bool:
    return bool(re.match(r"<svg[\s>]", _PROLOG.sub("", text), re.IGNORECASE))
