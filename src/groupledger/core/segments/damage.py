"""Describe damage to a segment, each kind with a code to count by and a message that names file and byte."""

from __future__ import annotations

from dataclasses import dataclass, replace

from groupledger.core.faults import Code


class SegmentCode(Code):
    """Why bytes of a segment are not records."""

    OLD_MAGIC = "OLD_MAGIC", "messages of magic 0 or 1, of before Kafka 0.11; a run of them is one row"
    BAD_MAGIC = "BAD_MAGIC", "the header of a batch names a magic that Kafka does not have"
    BAD_LENGTH = "BAD_LENGTH", "shorter than a header, longer than the rest of the file or than is held in memory"
    BAD_CRC = "BAD_CRC", "bytes that do not give the checksum of the batch"
    BAD_HEADER = "BAD_HEADER", "the checksum is right, and the numbers of the header contradict each other"
    OFFSETS_BACKWARD = "OFFSETS_BACKWARD", "offsets below those of the batch before"
    OFFSETS_BEYOND = "OFFSETS_BEYOND", "offsets as high as those of the next segment"
    BAD_RECORDS = "BAD_RECORDS", "the checksum is right, and the records are not what the header says"
    UNKNOWN_CODEC = "UNKNOWN_CODEC", "a codec that Kafka does not have"
    BAD_COMPRESSION = "BAD_COMPRESSION", "bytes that the codec did not write"
    SEGMENT_CUT = "SEGMENT_CUT", "a segment that is not the last ends within a batch"
    ZERO_BYTES = "ZERO_BYTES", "zeros where batches should be"
    READ_ERROR = "READ_ERROR", "the disk does not give the bytes; the rest of that segment is lost"


@dataclass(frozen=True, slots=True)
class Damage:
    """Bytes of a file, from `start` to before `end`, that yielded no record. `offset`: the least they may hold."""

    code: SegmentCode
    file: str
    start: int
    end: int
    offset: int
    got: str
    expected: str

    @property
    def message(self) -> str:
        """Say what is damaged, where, got, expected, and where reading continued."""
        where = f"{self.file}, bytes {self.start} to {self.end - 1}"
        return f"{where}: got {self.got}; expected {self.expected}; the records before and behind are read"

    def and_then(self, other: Damage) -> Damage | None:
        """Merge with `other` if it is the same damage at the next byte; otherwise return None."""
        if (self.code, self.file, self.end) != (other.code, other.file, other.start):
            return None
        return replace(self, end=other.end)
