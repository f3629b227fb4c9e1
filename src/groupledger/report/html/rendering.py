"""Render pages as HTML; names are always escaped."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

from groupledger.core.cells import cell
from groupledger.report.html.page_parts import Link

if TYPE_CHECKING:
    from jinja2 import Environment

    from groupledger.report.html.comparison_page import ComparisonPage
    from groupledger.report.html.group_page import GroupPage
    from groupledger.report.html.index_page import IndexPage


@cache
def _environment() -> Environment:
    from jinja2 import Environment, PackageLoader, StrictUndefined
    from markupsafe import Markup

    def shown(value: Any) -> Any:
        """Escape a value as a table shows it; what is HTML already stays."""
        return value if isinstance(value, Markup) else cell(value)

    environment = Environment(
        loader=PackageLoader("groupledger.report.html"), autoescape=True, undefined=StrictUndefined, finalize=shown
    )
    environment.tests["link"] = lambda value: isinstance(value, Link)
    return environment


def group_html(page: GroupPage) -> str:
    """Render the page of a group."""
    return _environment().get_template("group.html").render(page=page)


def comparison_html(page: ComparisonPage) -> str:
    """Render the page of a comparison of scripts."""
    return _environment().get_template("comparison.html").render(page=page)


def index_html(page: IndexPage) -> str:
    """Render the index."""
    return _environment().get_template("index.html").render(page=page)
