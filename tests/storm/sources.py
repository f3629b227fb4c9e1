"""What a storm ingests: a captured log in overlapping and late pieces; and the configuration of each command."""

from __future__ import annotations

import gzip
from dataclasses import dataclass, replace
from pathlib import Path

from groupledger.config import AssignSettings, Config, LedgerSettings, LimitSettings, MaintainSettings, SourceSettings
from groupledger.config.loading import CAPTURES

CAPTURE = CAPTURES / "dev"
PIECES = 9
OVERLAP = 12
"""Lines of the piece before that each piece brings again."""
LATE_EVERY = 7
LATER = 3
"""Pieces that come after the first comparison, when names are redacted beside everything else."""
ASSIGNS = (
    AssignSettings(snapshots="every"),
    AssignSettings(assignor="range", scenario="to-range", snapshots="latest"),
)
TOPICS = "topics"


@dataclass(frozen=True, slots=True)
class Sources:
    """The pieces, in the order of the log but for the late ones, and the ledger that they go into."""

    folder: Path

    @staticmethod
    def written(folder: Path) -> Sources:
        """Cut the captured log."""
        folder.mkdir(parents=True)
        lines = gzip.decompress((CAPTURE / "offsets.jsonl.gz").read_bytes()).decode().splitlines()
        early = [line for number, line in enumerate(lines) if number % LATE_EVERY]
        late = lines[::LATE_EVERY]
        length = -(-len(early) // (PIECES - 2))
        pieces = [early[max(0, start - OVERLAP) : start + length] for start in range(0, len(early), length)]
        middle = len(late) // 2
        pieces[2:2] = [late[:middle]]  # some are late at once, some when all others have come
        pieces.append(late[middle:])
        for number, piece in enumerate(pieces):
            (folder / f"{number}.jsonl").write_text("".join(f"{line}\n" for line in piece), encoding="utf-8")
        return Sources(folder)

    @property
    def pieces(self) -> tuple[str, ...]:
        """Their names, in the order in which a quiet ledger takes them."""
        return tuple(sorted(path.stem for path in self.folder.glob("*.jsonl")))

    def config(self, ledger: Path, piece: str | None = None, assign: AssignSettings = ASSIGNS[0]) -> Config:
        """How a command is configured that ingests a piece, or assigns."""
        log = SourceSettings(kind="offsets-jsonl", path=str(self.folder / f"{piece}.jsonl"))
        topics = SourceSettings(kind="topics-jsonl", path=str(CAPTURE / "topics.jsonl.gz"))
        config = Config(
            cluster_id="dev",
            ledger=LedgerSettings(location=str(ledger)),
            sources=(topics if piece == TOPICS else log,) if piece else (),
            assign=assign,
            limits=LimitSettings(),
            buckets=2,
        )
        return replace(config, maintain=MaintainSettings(attempt_hours=1, lease_minutes=1, file_mb=1))
