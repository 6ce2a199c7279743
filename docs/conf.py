# SPDX-License-Identifier: Apache-2.0
"""Sphinx's settings for `make docs`.

The root of the repository is the source folder, so that links between pages work in a checkout too. The lists of
`docs/README.md` are the site's menu, and `docs/commands.md` is completed from the parsers of the commands.
"""

from __future__ import annotations

import argparse
import posixpath
import re
from collections.abc import Iterator
from importlib.metadata import version as read_version
from pathlib import Path

from docutils import nodes
from sphinx import addnodes
from sphinx.application import Sphinx

from ibprof.cli.command import read_parsers
from ibprof.cli.main import list_groups

ROOT = Path(__file__).resolve().parents[1]

project = "ibprof"
author = "The ibprof developers"
version = release = read_version("ibprof")
extensions = ["myst_parser"]
root_doc = "docs/README"
include_patterns = ["README.md", "docs/**.md", "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md", "findings/README.md"]
include_patterns += ["changes/README.md", "examples/README.md", "packaging/README.md", "studies/*/README.md"]
include_patterns += ["benchmarks/*/README.md"]
exclude_patterns = [
    path.name
    for path in ROOT.iterdir()
    if path.name not in ("benchmarks", "changes", "docs", "examples", "findings", "packaging", "studies")
    and path.is_dir()
]
exclude_patterns += ["docs/decisions/0000-template.md"]

myst_enable_extensions = ["deflist"]
myst_heading_anchors = 4
smartquotes = False
highlight_language = "none"

html_theme = "furo"
html_title = f"ibprof {version}"
html_show_sphinx = False
html_show_copyright = False
html_additional_pages = {"index": "redirect.html"}
html_copy_source = False
html_static_path = [str(ROOT / "docs" / "static")]
html_css_files = ["site.css"]
templates_path = ["templates"]

_LISTED = re.compile(r"\n  (\S+) +(.*)")
"""Pattern of an indented line: a name and the meaning of this name, in a command's description."""

_LONG_WORD = 28
"""Number of characters from which a word of code may break at the end of a line, such as a path."""

_HYPHENATED = re.compile(r"(?<=[\s>])[\w./:]*-[\w./:-]{1,40}(?=[\s<])")
"""A word of a code block that a browser would break after a hyphen, such as an option."""

_PAGE_LINK = re.compile(r"\[[^\]]*\]\(([^):#]+)\.md\)")


def setup(app: Sphinx) -> None:
    """Register functions that complete a page's text, links and long words."""
    app.connect("source-read", _complete)
    app.connect("doctree-resolved", _open_pages)
    app.connect("doctree-resolved", _mark_long_words)
    app.connect("html-page-context", _keep_hyphenated_words)


def _complete(_: Sphinx, page: str, source: list[str]) -> None:
    if page == "docs/commands":
        source[0] += "\n".join(write_commands())
    elif page == "docs/decisions/README":
        source[0] += _write_menu(":maxdepth: 1", ["[0-9]*"])
    elif page in ("docs/README", "docs/case-studies/README"):
        source[0] += "".join(_read_menu(page, source[0]))


def _open_pages(_: Sphinx, document: nodes.document, page: str) -> None:
    """Let links to HTML files open these files, because Sphinx's links would download them."""
    for link in list(document.findall(addnodes.download_reference)):
        if link["reftarget"].endswith(".html") and "filename" in link:
            address = posixpath.relpath(f"_downloads/{link['filename']}", posixpath.dirname(page) or ".")
            link.replace_self(nodes.reference("", "", *link.children, refuri=address, internal=True))


def _mark_long_words(_app: Sphinx, document: nodes.document, _page: str) -> None:
    for literal in document.findall(nodes.literal):
        if max(map(len, literal.astext().split()), default=0) >= _LONG_WORD:
            literal["classes"].append("long")


def _keep_hyphenated_words(_app: Sphinx, _page: str, _template: str, context: dict[str, str], _: object) -> None:
    def mark(block: re.Match[str]) -> str:
        return _HYPHENATED.sub(r'<span class="word">\g<0></span>', block[0])

    if "body" in context:
        context["body"] = re.sub(r"<pre>.*?</pre>", mark, context["body"], flags=re.DOTALL)


def _read_menu(page: str, text: str) -> Iterator[str]:
    """Yield a menu for each heading, with the linked pages below the heading. A page is only in the first such menu."""
    seen = {page}
    for part in re.split(r"^#+ ", text, flags=re.MULTILINE)[1:]:
        targets = [
            posixpath.normpath(posixpath.join(posixpath.dirname(page), each)) for each in _PAGE_LINK.findall(part)
        ]
        entries = [each for each in dict.fromkeys(targets) if each not in seen]
        seen |= set(entries)
        if entries:
            caption = part.partition("\n")[0]
            yield _write_menu(f":hidden:\n:caption: {caption}", [f"/{each}" for each in entries])


def _write_menu(options: str, entries: list[str]) -> str:
    return "\n\n```{toctree}\n" + options + "\n:glob:\n\n" + "\n".join(entries) + "\n```\n"


def write_commands() -> Iterator[str]:
    """Write the reference of all commands as Markdown, from their parsers."""
    parsers = read_parsers()
    for group, names in list_groups(parsers).items():
        yield f"\n## {group[0].upper()}{group[1:]}\n"
        for name in names:
            yield from _write_command(f"ibprof {name}", parsers[name], 3)


def _write_command(name: str, parser: argparse.ArgumentParser, level: int) -> Iterator[str]:
    """Write a command with its subcommands as Markdown."""
    parser.prog = name
    yield f"\n{'#' * level} {name}\n"
    yield _write_block(parser.format_usage())
    yield _LISTED.sub(r"\n* **\1**: \2", _escape(parser.description or ""))
    for group in parser._action_groups:
        if actions := [each for each in group._group_actions if each.help is not argparse.SUPPRESS]:
            yield f"\n**{_escape(group.title or '')}**"
            yield f"\n{_escape(group.description)}\n" if group.description else ""
            for action in actions:
                yield from _write_argument(parser, action)
    for text in (parser.epilog, getattr(parser, "details", "")):
        yield from _write_text(text)
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for each, subparser in action.choices.items():
                yield from _write_command(f"{name} {each}", subparser, level + 1)


def _write_argument(parser: argparse.ArgumentParser, action: argparse.Action) -> Iterator[str]:
    formatter = parser._get_formatter()
    yield f"\n`{formatter._format_action_invocation(action)}`"
    if action.help:
        yield f": {_escape(' '.join(formatter._expand_help(action).split()))}"
    elif action.choices:
        yield f": {', '.join(f'`{each}`' for each in action.choices)}"
    else:
        yield ": (no further help)"


def _write_text(text: str | None) -> Iterator[str]:
    """Write a help text: paragraphs with indentation or columns as they are printed, others as prose."""
    for part in re.split(r"\n\s*\n", (text or "").strip("\n")):
        if re.search(r"^ |^\w+:|\S {2,}\S", part, flags=re.MULTILINE):
            yield _write_block(re.sub(r"`([^`\n]+)`", r"\1", part))
        elif part:
            yield "\n" + re.sub(r"docs/([\w/-]+\.md)", r"[docs/\1](\1)", _escape(part)) + "\n"


def _write_block(text: str) -> str:
    return f"\n```text\n{text.rstrip()}\n```\n"


def _escape(text: str) -> str:
    """Escape Markdown's characters outside of code."""
    parts = re.split(r"(`[^`\n]+`)", text)
    return "".join(part if part[:1] == "`" else re.sub(r"([\\*_<\[\]|~$])", r"\\\1", part) for part in parts)
