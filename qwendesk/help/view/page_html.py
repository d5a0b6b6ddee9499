"""Converts a page of the guide to HTML that Qt can draw, and styles it in the theme's colours."""

import itertools

from markdown_it import MarkdownIt

from qwendesk.help.guide import GuidePage, heading_anchor
from qwendesk.widgets.theme import MONO_FAMILIES_CSS, Theme


def page_to_html(page: GuidePage) -> str:
    """Return the page with its section ids as anchors. HTML in its Markdown is shown as text."""
    markdown = MarkdownIt("commonmark", {"html": False}).enable("table")
    tokens = markdown.parse(page.markdown)
    for before, token in itertools.pairwise(tokens):
        if before.type == "heading_open":
            before.attrSet("id", page.section_id(heading_anchor(token.content)))
        if before.type == "paragraph_open" and token.content.startswith("!["):
            before.attrSet("class", "picture")
        if token.type == "table_open":
            token.attrSet("cellpadding", "6")
            token.attrSet("cellspacing", "0")
        if token.type == "fence":
            token.content = token.content.rstrip("\n")  # Qt would draw an empty line
    return str(markdown.renderer.render(tokens, markdown.options, {}))


def page_style(theme: Theme) -> str:
    """Return the style sheet of a page, for QTextDocument.setDefaultStyleSheet."""
    return f"""
    h1 {{ font-size: {theme.px(24)}px; font-weight: 600; margin-bottom: 12px; }}
    h2 {{ font-size: {theme.px(18)}px; font-weight: 600; margin-top: 22px; margin-bottom: 8px; }}
    h3 {{ font-size: {theme.px(15)}px; font-weight: 600; margin-top: 16px; margin-bottom: 6px; }}
    p, li {{ font-size: {theme.px(14)}px; line-height: 135%; margin-top: 6px; margin-bottom: 6px; }}
    p.picture {{ line-height: 100%; }}
    td, th {{ font-size: {theme.px(13)}px; border: 1px solid {theme["border"]}; }}
    th {{ font-weight: 600; text-align: left; background-color: {theme["card"]}; }}
    table {{ border-collapse: collapse; margin-top: 8px; margin-bottom: 10px; }}
    a {{ color: {theme["text_link"]}; text-decoration: none; }}
    code {{ font-family: {MONO_FAMILIES_CSS}; color: {theme["code_text"]}; }}
    code {{ background-color: {theme["code_background"]}; }}
    pre {{ background-color: {theme["code_background"]}; white-space: pre-wrap; margin-top: 8px; margin-bottom: 10px; }}
    """


def contents_style(theme: Theme) -> str:
    """Return the style sheet of the list of pages."""
    return f"""
    QListWidget {{ background: transparent; border: none; outline: none; }}
    QListWidget::item {{ color: {theme["text"]}; padding: 6px 8px; border-radius: 6px; }}
    QListWidget::item:hover {{ background: {theme["hover"]}; }}
    QListWidget::item:selected {{ background: {theme["card"]}; color: {theme["text"]}; }}
    QListWidget:focus {{ border: 1px solid {theme["focus"]}; border-radius: 8px; }}
    """
