"""Pages read as a browser would: every element closed, where its links lead, and all that a reader sees."""

from __future__ import annotations

import base64
from html.parser import HTMLParser
from xml.etree import ElementTree

VOID = {"meta", "img", "br", "wbr", "link", "hr", "input"}
ADDRESSES = {"src", "href", "action", "data", "srcset", "poster", "background", "formaction", "cite", "ping"}


class Page(HTMLParser):
    """`Page(text)`: its `tags`, `links`, images as SVG, alternative texts, and the text of everything."""

    def __init__(self, text):
        super().__init__(convert_charrefs=True)
        self.tags, self.links, self.pictures, self.alts, self.text = [], [], [], [], ""
        self.handlers, self.styles, self.open = [], [], []
        self.feed(text)
        self.close()
        assert self.open == [], f"not closed: {self.open}"

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        if tag not in VOID:
            self.open.append(tag)
        for name, value in attrs:
            if name in ADDRESSES:
                self.links.append(value)
            if name.startswith("on"):
                self.handlers.append(name)
        found = dict(attrs)
        if tag == "img":
            self.alts.append(found.get("alt"))
            kind, _, data = found["src"].partition(",")
            assert kind == "data:image/svg+xml;base64"
            self.pictures.append(base64.b64decode(data, validate=True))

    def handle_endtag(self, tag):
        assert self.open
        assert self.open.pop() == tag
        if tag in {"td", "th"}:
            self.text += " "

    def handle_data(self, data):
        if self.open and self.open[-1] == "style":
            self.styles.append(data)
        else:
            self.text += data


def size_of(svg):
    """Width and height in points."""
    root = ElementTree.fromstring(svg)  # noqa: S314 - our own
    return tuple(float(root.get(name).removesuffix("pt")) for name in ("width", "height"))


def texts_of(svg):
    """All texts in a picture."""
    return ["".join(each.itertext()) for each in ElementTree.fromstring(svg).iter("{http://www.w3.org/2000/svg}text")]  # noqa: S314
