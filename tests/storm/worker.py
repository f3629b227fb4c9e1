"""One worker: a session, and commands one after the other until it is killed. `python -m tests.storm.worker <order>`.

Each command is a line in the journal when it begins, and one when it ends; what was killed has no second one.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

from groupledger.config import SparkSettings
from groupledger.engine.session import session
from groupledger.sinks import ledger_tables, location
from tests.faults.sessions import unpack_codecs
from tests.storm.operations import REDACT, WEIGHTS, Storm, clock, disk, ended
from tests.storm.sources import Sources

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

JVM_KILLED = "JVM killed"
counted: Counter[str] = Counter()


def storm_session() -> SparkSession:
    """A small session; its Python workers interpret the kernels, so that none is compiled."""
    settings = SparkSettings(
        profile="small",
        master="local[2]",
        driver_memory="700m",
        conf={"spark.sql.shuffle.partitions": "2"},
    )
    return session(settings, "groupledger storm")


def main(order: dict[str, Any]) -> None:
    """Draw commands and run them until the end of the storm."""
    _count("_waits", location, "lock waits")
    _count("is_conflict", ledger_tables, "retries")
    if not order["locked"]:
        _unlock()
    random = Random(order["draws"])  # noqa: S311 - the seed is the point
    spark = storm_session()
    unpack_codecs(spark)
    jvm = int(spark._jvm.java.lang.ProcessHandle.current().pid())
    storm = Storm(spark, Sources(Path(order["sources"])), Path(order["ledger"]), tuple(order["pieces"]), random)
    weights = WEIGHTS | ({REDACT: 2} if order["redact"] else {})
    with Path(order["journal"]).open("a", encoding="utf-8", buffering=1) as journal:
        journal.write(json.dumps({"jvm": jvm}) + "\n")
        while not Path(order["stop"]).exists():
            [name] = random.choices(list(weights), list(weights.values()))
            jump, now = clock(random)
            journal.write(json.dumps({"began": name}) + "\n")
            counted.clear()
            with disk(random, jvm) as full:
                try:
                    told: dict[str, Any] = {"ended": "done", "detail": storm.run(name, now)}
                except Exception as error:  # noqa: BLE001 - whatever it is, it is told, and judged
                    told = ended(error, full=bool(full)) if alive(jvm) else {"ended": JVM_KILLED, "detail": ""}
            told |= {"command": name, "events": [event for event in (jump, full) if event], **counted}
            journal.write(json.dumps(told) + "\n")
            if not alive(jvm):
                return
    spark.stop()


def alive(process: int) -> bool:
    """Whether a process of ours runs; one that was killed stays a zombie until it is waited for."""
    stat = Path(f"/proc/{process}/stat")
    return stat.exists() and stat.read_text(encoding="ascii", errors="replace").rpartition(")")[2].split()[0] != "Z"


def _count(name: str, module: Any, what: str) -> None:
    """Count the calls of a function of a module: waits for locks, conflicts that are tried again."""
    function = getattr(module, name)

    def counting(*args: Any, **named: Any) -> Any:
        result = function(*args, **named)
        if name == "_waits":
            return _counted(result, what)
        counted[what] += bool(result)
        return result

    setattr(module, name, counting)


def _counted(waits: Any, what: str) -> Any:
    for number, wait in enumerate(waits):
        counted[what] += not number
        yield wait


def _unlock() -> None:
    """Break the code on purpose: no command takes a lock."""
    from contextlib import nullcontext

    from groupledger.sinks import append

    setattr(append, "table_lock", lambda *_: nullcontext())  # noqa: B010 - a module's own import


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
