"""Keep secrets of configurations out of everything that is written: messages, logs, tables.

A secret is recognised by its name (`password=...`, `fs.s3a.secret.key: ...`, a JAAS configuration), by its place
(before the `@` of a URL, after `Bearer`), and by its value: the values of secret settings of every loaded
configuration are remembered, and hidden wherever they appear, also escaped or encoded. Text for a reader passes
through here; text for Spark does not.

A value is searched for by itself if it has at least 4 characters and is neither a number of less than 6 digits nor a
plain word such as `true`; if it has less than 8 characters, only as a whole word. Others are hidden only by name or
place: a password `1` must not blank every 1.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Iterable, Iterator
from urllib.parse import unquote

HIDDEN = "***"
LEAST_SOUGHT, LEAST_INSIDE_WORDS, LEAST_DIGITS = 4, 8, 6
PLAIN = frozenset({"true", "false", "none", "null", "auto", "default", "simple", "kerberos", "anonymous", "secret"})
"""Values that are no secrets, even if a setting with a secret's name has them."""

SENSITIVE = (
    r"password|passwd|passphrase|pwd|secret|token|credential|jaas|bearer|authorization|api[._-]?key"
    r"|(?:access|private|account|shared|encryption|master)[._-]?key|signature|\bsig\b"
)
"""Names of secret settings, as an expression that Python and Java both read, in any case."""
_NAMED = re.compile(SENSITIVE, re.IGNORECASE)
_QUOTED = (
    r"(?P<open>['\"])(?:(?P=open)(?P=open)|\\.|(?!(?P=open))[^\\])*+(?:(?P=open)|$)"
    r"|(?P<escaped>\\+['\"])(?:(?!(?<!\\)(?P=escaped))(?:\\.|[^\\]))*+(?:(?P=escaped)|$)"
)
_INNER = r"'(?:\\.|[^'\\])*+'|\"(?:\\.|[^\"\\])*+\"|[^\[({\])}'\"]"
_LISTED = rf"[\[({{](?:{_INNER}|[\[({{](?:{_INNER})*+[\])}}]|[\[({{'\"])*+[\])}}]?"
_BARE = r"(?:(?:bearer|basic|digest)\s+)?(?:[^\s'\"&;,<]|['\"](?=\w)|,(?!\s|[\w.-]+['\"]?\s*[=:]|$))+"
_ASSIGNED = re.compile(
    rf"(?P<name>(?:{SENSITIVE})[\w.-]{{0,200}}\\*['\"]?[\])]?)(?P<sign>\s*(?:=>|[=:]|%3[AD])\s*)"
    rf"(?P<value>{_QUOTED}|{_LISTED}|{_BARE})",
    re.IGNORECASE | re.DOTALL,
)
_PAIRED = re.compile(
    rf"(?P<name>(?:{SENSITIVE})[\w.-]{{0,200}}\\*['\"])(?P<sign>\s*,\s*)(?P<value>{_QUOTED})", re.IGNORECASE | re.DOTALL
)
_GIVEN = re.compile(
    rf"(?P<name>(?<!\S)--?[\w.-]{{0,200}}?(?:{SENSITIVE})[\w.-]{{0,200}})(?P<sign>\s+)(?P<value>[^\s-]\S*)", re.I
)
_MARKED_UP = re.compile(
    rf"(?P<name>(?:{SENSITIVE})[\w.-]{{0,200}})(?P<sign>(?:</name>\s*<value)?>)(?P<value>[^<]+)", re.IGNORECASE
)
_BORNE = re.compile(r"(?P<name>\bbearer)(?P<sign>\s+)(?P<value>[\w.~+/=%-]{8,})", re.IGNORECASE)
_BY_NAME = (_ASSIGNED, _PAIRED, _GIVEN, _MARKED_UP)
_IN_URL = re.compile(r"(?<=://)(?:[^/@\s'\"]*:(?:(?!://)[^\s'\"])*|[^/\s'\"]*)(?=@)")
_IN_ENCODED_URL = re.compile(r"(?<=%3A%2F%2F)[^\s'\"&]*(?=%40)", re.IGNORECASE)
_CLOSING = ")]},.:"
_ESCAPED = {
    **{" ": (r"\+",), "\n": (r"\\{1,16}n",), "\t": (r"\\{1,16}t",), "&": ("&amp;",), "<": ("&lt;",), ">": ("&gt;",)},
    **{"'": ("&apos;", "&#39;"), '"': ("&quot;", "&#34;")},
}
"""Escaped forms of characters, as expressions."""


class _Remembered:
    """Values of secret settings, as one pattern. Rebuilt when a value is added, read by any thread."""

    def __init__(self) -> None:
        self.values: frozenset[str] = frozenset()
        self.pattern: re.Pattern[str] | None = None

    def add(self, values: Iterable[str]) -> None:
        new = self.values | {value for value in values if _is_sought(value)}
        if new != self.values:
            longest_first = sorted(new, key=lambda value: (-len(value), value))
            self.values, self.pattern = new, re.compile("|".join(map(_sought, longest_first)))


_remembered = _Remembered()


def is_secret(name: str) -> bool:
    """Return whether a setting of this name holds a secret: `spark.hadoop.fs.s3a.secret.key` does."""
    return _NAMED.search(name) is not None


def remember(values: Iterable[str]) -> None:
    """Hide these values from now on, wherever they appear in this process."""
    _remembered.add(values)


def without_values(text: str) -> str:
    """Replace each remembered value by `***`, in text that may look like a secret but is data."""
    return text if _remembered.pattern is None else _remembered.pattern.sub(HIDDEN, text)


def without_secrets(text: str) -> str:
    """Replace each secret by `***`: `s3a://key:word@bucket/x?token=t` -> `s3a://***@bucket/x?token=***`."""
    text = without_values(text)
    if "@" in text:
        text = _IN_URL.sub(HIDDEN, text)
    if "%40" in text:
        text = _IN_ENCODED_URL.sub(HIDDEN, text)
    if _NAMED.search(text) is None:
        return text
    for pattern in (_BORNE, *_BY_NAME):
        text = pattern.sub(_hidden, text)
    return text


def _hidden(found: re.Match[str]) -> str:
    value = found["value"]
    return f"{found['name']}{found['sign']}{HIDDEN}{value[len(value.rstrip(_CLOSING)) :] if _is_bare(value) else ''}"


def _is_bare(value: str) -> bool:
    return value.lstrip("\\")[:1] not in tuple("'\"[({")


def secrets_in(name: str, value: str) -> Iterator[str]:
    """Yield the secrets of a setting: its value if its name is secret, and those inside the value.

    All of `fs.s3a.secret.key`; all of a JAAS configuration, and its password; the part of a URL before the `@`.
    """
    if is_secret(name):
        yield value
        yield from (part.strip(" '\"") for part in value.split(",") if "=" not in part)
    for found in _IN_URL.findall(value):
        user, colon, word = found.partition(":")
        if colon:
            yield from (found, word, unquote(word), *([user] if len(user) >= 2 * LEAST_INSIDE_WORDS else []))
    for pattern in (_BORNE, *_BY_NAME):
        for match in pattern.finditer(value):
            inner = match["value"].strip("\\'\"")
            yield from (inner, unquote(inner), re.sub(r"\\(.)", r"\1", inner))


def _is_sought(value: str) -> bool:
    long = len(value) >= (LEAST_DIGITS if value.isdigit() else LEAST_SOUGHT)
    return long and value.lower() not in PLAIN and HIDDEN not in value and value.strip() != ""


def _sought(value: str) -> str:
    """Return an expression for the value, plain, escaped as URLs, JSON, SQL, Python or XML do, repeatedly, or base64.

    A short value is matched only as a whole word.
    """
    written = "".join(map(_written, re.sub(r"\\+", r"\\", value)))
    written = written if len(value) >= LEAST_INSIDE_WORDS else rf"(?<!\w){written}(?!\w)"
    content = value.encode(errors="replace")
    coded = {encode(content).decode().rstrip("=") for encode in (base64.b64encode, base64.urlsafe_b64encode)}
    return "|".join([written, *map(re.escape, sorted(coded))])


def _written(character: str) -> str:
    """Return an expression for one character, escaped or not."""
    if character == "\\":
        plain = r"\\{1,16}"
    elif character == "'":
        plain = r"(?:\\{0,16}'){1,2}"
    elif character in '"/':
        plain = rf"\\{{0,16}}{character}"
    else:
        plain = re.escape(character)
    octets = "".join(f"%(?:25){{0,4}}(?i:{octet:02X})" for octet in character.encode(errors="replace"))
    ways = [plain, octets, *_ESCAPED.get(character, ())]
    if not character.isascii():
        units = character.encode("utf-16-be", errors="surrogatepass").hex()
        ways.append("".join(rf"\\{{1,16}}u(?i:{units[at : at + 4]})" for at in range(0, len(units), 4)))
    return f"(?:{'|'.join(ways)})"
