"""Resolve `${env:NAME}` and `${file:PATH}` in the configured options of a Kafka client."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from functools import partial
from pathlib import Path

from groupledger.config.settings import ConfigFault
from groupledger.core.kafka_options import properties
from groupledger.core.secrets import is_secret, remember, secrets_in

_REFERENCE = re.compile(r"\$\{(env|file):([^}]+)\}")


def resolved(options: Mapping[str, str]) -> dict[str, str]:
    """Replace every reference in the options; their secrets are hidden in messages from now on.

    `${env:NAME}` is a variable of the environment, `${file:PATH}` the text of a file without the line feed at its end,
    `${file:PATH:KEY}` one key of a properties file, as Kafka's providers have them. Raises ConfigFault CONFIG_INVALID.
    """
    found = {name: _REFERENCE.sub(partial(_value, name), text) for name, text in options.items()}
    for name, value in found.items():
        remember(secrets_in(name, value))
    return found


def from_file(path: Path) -> dict[str, str]:
    """Read options from a properties file such as Kafka's tools take with `--command-config`."""
    return properties(_text("--command-config", path))


def _value(name: str, match: re.Match[str]) -> str:
    kind, reference = match[1], match[2]
    if kind == "env":
        value = os.environ.get(reference)
        if value is None:
            raise ConfigFault("CONFIG_INVALID", f"the option {name} names a variable that is not set: {reference}")
    else:
        value = _from_file(name, reference)
    if is_secret(name):
        remember([value])
    return value


def _from_file(name: str, reference: str) -> str:
    path, colon, key = reference.rpartition(":")
    if not colon or Path(reference).is_file():
        return _text(name, Path(reference)).removesuffix("\n").removesuffix("\r")
    found = properties(_text(name, Path(path)))
    if key not in found:
        raise ConfigFault("CONFIG_INVALID", f"the option {name} names the key {key}, which {path} has not")
    return found[key]


def _text(name: str, path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "it is not UTF-8"
        raise ConfigFault(
            "CONFIG_INVALID", f"the option {name} names {path}, which cannot be read: {reason}"
        ) from error
