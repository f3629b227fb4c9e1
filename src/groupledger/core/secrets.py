"""Secrets that configurations hold, kept out of whatever is written down: messages, logs, tables.

A secret is known by its name (`password=...`, `fs.s3a.secret.key: ...`, a JAAS configuration), by its place (before the
`@` of a URL, after `Bearer`), and by itself: the values of secret settings of every configuration that was loaded are
remembered, and hidden wherever they turn up, also escaped or encoded. What is meant for a reader passes through here;
what is meant for Spark does not.

A value is sought by itself if it has at least 4 characters and is no number of less than 6 digits and no plain word
such as `true`; one of less than 8 characters only where it stands as a word of its own. Others are hidden where name
or place tell them: a password `1` must not blank every 1.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Iterable, Iterator
from urllib.parse import unquote

HIDDEN = "***"
LEAST_SOUGHT, LEAST_INSIDE_WORDS, LEAST_DIGITS = 4, 8, 6
PLAIN = frozenset({"true", "false", "none", "null", "auto", "default", "simple", "kerberos", "anonymous", "secret"})
"""Values that say nothing, though a setting with a secret's name has them."""

SENSITIVE = (
    r"password|passwd|passphrase|pwd|secret|token|credential|jaas|bearer|authorization|api[._-]?key"
    r"|(?:access|private|account|shared|encryption|master)[._-]?key|signature|\bsig\b"
)
"""Names of settings that hold one, as an expression that Python and Java both read, in any case."""
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
    rf"(?P<name>(?:{SENSITIVE})[\w.-]{{0,200}}\\*['\"])(?P<sign>\s*,\s*)(?P<value>{_QUOTED})",
    re.IGNORECASE | re.DOTALL,
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
"""What else stands for a character, as expressions."""


class _Remembered:
    """Values of secret settings, as one pattern. Made anew where a value is added, read by any thread."""

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
    """Whether a setting of this name holds a secret: `spark.hadoop.fs.s3a.secret.key` does."""
    return _NAMED.search(name) is not None


def remember(values: Iterable[str]) -> None:
    """Hide these values from now on, wherever they turn up in this process."""
    _remembered.add(values)


def without_values(text: str) -> str:
    """The same text with each remembered value as `***`; for what may look like a secret and is data."""
    return text if _remembered.pattern is None else _remembered.pattern.sub(HIDDEN, text)


def without_secrets(text: str) -> str:
    """The same text with each secret as `***`: `s3a://key:word@bucket/x?token=t` -> `s3a://***@bucket/x?token=***`."""
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
    """The secrets that a setting holds: its value if its name is secret, and those that stand in the value.

    Of `fs.s3a.secret.key` all; of a JAAS configuration all, and its password; of a URL what stands before the `@`.
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
    """An expression for the value as it is, as URLs, JSON, SQL, Python and XML write it, however often, and in base64.

    One of few characters only as a word of its own.
    """
    written = "".join(map(_written, re.sub(r"\\+", r"\\", value)))
    written = written if len(value) >= LEAST_INSIDE_WORDS else rf"(?<!\w){written}(?!\w)"
    content = value.encode(errors="replace")
    coded = {encode(content).decode().rstrip("=") for encode in (base64.b64encode, base64.urlsafe_b64encode)}
    return "|".join([written, *map(re.escape, sorted(coded))])


def _written(character: str) -> str:
    """An expression for one character, escaped or not."""
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
