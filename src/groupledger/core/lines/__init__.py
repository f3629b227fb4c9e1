"""Parse lines of text into rows, strictly: a line is one record, or it is rejected with the reason.

Each parser takes the bytes of one physical line and returns the fields of a row and, last, its problem: None,
OTHER_TOPIC, or `CODE: message`. It never raises, whatever the bytes are.
"""

from groupledger.core.lines.log_records import LOG_FIELDS, log_record
from groupledger.core.lines.strict_json import OTHER_TOPIC, as_text, is_blank
from groupledger.core.lines.table_rows import table_row
from groupledger.core.lines.topic_listings import LISTING_FIELDS, listed_topic

__all__ = [
    "LISTING_FIELDS",
    "LOG_FIELDS",
    "OTHER_TOPIC",
    "as_text",
    "is_blank",
    "listed_topic",
    "log_record",
    "table_row",
]
