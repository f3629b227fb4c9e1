"""Secrets that configurations hold, kept out of whatever is written down: messages, logs, tables.

A secret is known by its name (`password=...`, `fs.s3a.secret.key: ...`, a JAAS configuration) or by its place (before
the `@` of a URL). What is meant for a reader passes through here; what is meant for Spark does not.
"""

from __future__ import annotations

import re

HIDDEN = "***"
_NAMES = (
    r"password|passwd|secret|token|credential|jaas|access[._-]?key|private[._-]?key|account[._-]?key|signature|\bsig\b"
)
_NAMED = re.compile(_NAMES, re.IGNORECASE)
_IN_URL = re.compile(r"(?<=://)[^/@\s'\"]*(?=@)")
_ASSIGNED = re.compile(
    rf"(?P<name>[\w.-]*(?:{_NAMES})[\w.-]*)(?P<sign>['\"]?\s*[=:]\s*)(?P<value>'[^']*'|\"[^\"]*\"|[^\s,;&)\]}}'\"]+)",
    re.IGNORECASE,
)


def is_secret(name: str) -> bool:
    """Whether a setting of this name holds a secret: `spark.hadoop.fs.s3a.secret.key` does."""
    return _NAMED.search(name) is not None


def without_secrets(text: str) -> str:
    """The same text with each secret as `***`: `s3a://key:word@bucket/x?token=t` -> `s3a://***@bucket/x?token=***`."""
    if "@" in text:
        text = _IN_URL.sub(HIDDEN, text)
    if _NAMED.search(text) is None:
        return text
    return _ASSIGNED.sub(lambda found: f"{found['name']}{found['sign']}{HIDDEN}", text)
