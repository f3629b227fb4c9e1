"""A reader of user data without the codecs: what the tests hold the decoder against.

That bytes come back whole is true of a decoder that reads nothing, too.
"""

from __future__ import annotations

import struct
from dataclasses import replace

from groupledger.core.wire.consumer_protocol import COOPERATIVE_STICKY, STICKY, UserData, UserDataForm


class Reader:
    """Bytes from the first to the last, each number big-endian; ValueError where there is no such number or text."""

    def __init__(self, data):
        self.left = data

    def bytes(self, count):
        if not 0 <= count <= len(self.left):
            raise ValueError(count)
        taken, self.left = self.left[:count], self.left[count:]
        return taken

    def number(self, form):
        return struct.unpack(form, self.bytes(struct.calcsize(form)))[0]

    def length(self, form):
        count = self.number(form)
        if count < 0:
            raise ValueError(count)
        return count

    def topic(self):
        name = self.bytes(self.length(">h")).decode(errors="replace")  # as Java does
        return name, tuple([self.number(">i") for _ in range(self.length(">i"))])

    def topics(self):
        return tuple([self.topic() for _ in range(self.length(">i"))])

    def generation(self):
        number = self.number(">i")
        return None if number == -1 else number


def kip_54(data, form):
    """Topics and their partitions, then a generation where there is room for one; None if it is no such thing."""
    reader = Reader(data)
    try:
        owned = reader.topics()
    except ValueError:
        return None
    if len(reader.left) < 4:
        return UserData(UserDataForm.OWNED, owned, None, reader.left)
    return UserData(form, owned, reader.generation(), reader.left)


def meant(assignor, data):
    """What user data says by KIP-54, by Java's cooperative-sticky (a generation), by kafka-python (0001 before it)."""
    if not data:
        return UserData(UserDataForm.EMPTY)
    if assignor not in (STICKY, COOPERATIVE_STICKY):
        return UserData(UserDataForm.OPAQUE, leftover=data)
    if assignor == COOPERATIVE_STICKY and len(data) == 4:
        return UserData(UserDataForm.GENERATION, (), Reader(data).generation())
    read = kip_54(data, UserDataForm.OWNED_GENERATION)
    if read is None and data.startswith(b"\0\1"):
        prefixed = kip_54(data[2:], UserDataForm.PREFIXED_OWNED_GENERATION)
        read = prefixed if prefixed and prefixed.form is UserDataForm.PREFIXED_OWNED_GENERATION else None
    if read is None:
        return UserData(UserDataForm.OPAQUE, leftover=data)
    damaged = any("\ufffd" in topic for topic, _ in read.owned) and "\ufffd".encode() not in data
    return replace(read, damaged=data) if damaged else read
