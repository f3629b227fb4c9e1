"""Read segments of a log partition from a broker's disk: record batches into records.

Format: Kafka's documentation, "Message Format" (record batches of magic 2). Pure code over bytes of files opened
elsewhere; the decompressor is an argument.
"""

from groupledger.core.segments.batches import NO_UPPER
from groupledger.core.segments.damage import Damage, SegmentCode
from groupledger.core.segments.log_partition import LEFT_OUT, Decompress, LogReader, Segment
from groupledger.core.segments.records import Blobs, RecordColumns

__all__ = [
    "LEFT_OUT",
    "NO_UPPER",
    "Blobs",
    "Damage",
    "Decompress",
    "LogReader",
    "RecordColumns",
    "Segment",
    "SegmentCode",
]
