"""Code blocks of the documentation's pages, for the tests that run them."""

import re


def blocks(page, language):
    """The fenced blocks of a language, in order."""
    return re.findall(rf"^```{language}\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
