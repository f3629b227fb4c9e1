"""Write the corpus anew, and its table into the page: `python -m tests.corpus`."""

from __future__ import annotations

from tests.corpus.every import every
from tests.corpus.history import write
from tests.corpus.page import PAGE, with_table

if __name__ == "__main__":
    write(every())
    PAGE.write_text(with_table(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
