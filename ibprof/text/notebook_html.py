# SPDX-License-Identifier: Apache-2.0
"""Show objects as HTML in a notebook: small tables without scripts. Names are escaped."""

from __future__ import annotations

import html
import sys
from collections.abc import Iterable, Sequence
from functools import singledispatch
from importlib import import_module
from typing import ClassVar

from ibprof.text.quantities import printable


@singledispatch
def render_html(shown: object) -> str:
    """Return an object as HTML. Modules register renderers of their types by `render_html.register`.

    The module that a type names in `renderer_module` is imported at the first use.
    """
    module = getattr(shown, "renderer_module", "")
    if module and module not in sys.modules:
        import_module(module)
        return render_html(shown)
    return f"<pre>{escape(repr(shown))}</pre>"


class NotebookView:
    """Base of types that notebooks show by `render_html`. So a data type need not import a renderer."""

    __slots__ = ()
    renderer_module: ClassVar[str] = ""

    def _repr_html_(self) -> str:
        return render_html(self)


def render_table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table as HTML."""
    heads = "".join(f"<th>{escape(each)}</th>" for each in head)
    body = "".join("<tr>" + "".join(f"<td>{escape(each)}</td>" for each in row) + "</tr>" for row in rows)
    return f"<table>{f'<thead><tr>{heads}</tr></thead>' if head else ''}<tbody>{body}</tbody></table>"


def escape(text: str) -> str:
    """Return any text as HTML."""
    return html.escape(printable(text), quote=True)
