"""What every surface shows of two small ledgers, as digests in `outputs.json`: `make frozen`.

`python -m tests.frozen.outputs` lists what differs from the manifest; `--against REV` prints the difference of texts,
made by the sources of that revision as well;
`--write` keeps today's digests; `--only REGEX` looks at outputs with such names, and writes those alone.
The texts are in a folder `groupledger-` and six digits among the temporary files.
"""

from __future__ import annotations

import contextlib
import difflib
import hashlib
import io
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[2]
MANIFEST = Path(__file__).with_name("outputs.json")
FOLDER = Path(tempfile.gettempdir(), f"groupledger-{hashlib.sha256(str(ROOT).encode()).hexdigest()[:6]}")
"""One folder for each checkout, with paths of one length, by which texts wrap."""
REPORTS = ("storms", "joins", "migration", "skew", "static", "stickiness", "rack")
GROUPS = ("java-cooperative-sticky", "new-java-uniform", "st-java-coop", "up-coop-first", "del-to-new", "storm")
ON_DEMO = (
    *("who orders-4", "who orders-4 --at 2026-11-21T12:09Z", "who orders-4 --at 2026-11-21T12:09Z --wide --limit 3"),
    *("who --unowned-since", "who --unowned-since 1s --at 2026-11-21T13:50:30Z --limit 4", "who nothing-0"),
    *("who orders-4 --at 2026-11-21T12:09Z --group 'java-*' --fail", "who --unowned-since --fail --wide"),
    *("show", "show --cluster dev --limit 3 --wide", "show --findings --limit 9", "show --coverage"),
    *("show java-range --at 2026-11-21T12:09Z --cluster dev", "show --last"),
    *("show --quarantine", "show --group nobody"),
    *(f"show --group {group} --limit 8" for group in GROUPS),
    *(f"show --group {group} --last" for group in GROUPS),
    *(f"show --group {group} --generation 4 --wide --limit 2" for group in GROUPS),
    *(f"explain {group} --generation 4" for group in GROUPS),
    *("explain java-range", "explain st-java-range --at 2026-11-21T13:47:59Z", "explain rc-new --generation 9"),
    *(f"timeline {group}" for group in GROUPS),
    *("timeline 'java-*' --since 2026-11-21T12:09Z", "timeline rc-rdk-new --wide", "timeline a --until noon"),
    *("timeline --partition orders-4 --group 'java-*'", "timeline --partition orders-4 --limit 3 --wide"),
    *("diff java-cooperative-sticky --from 2 --to 6", "diff new-java-uniform --from 3 --wide", "diff storm --from 5"),
    *("diff st-java-coop --from 2 --limit 1", "diff java-range --scenarios baseline,baseline --generation 3"),
    *("audit", "audit --group 'java-*' --limit 2", "audit --cluster edge --fail-on error", "audit --wide"),
    *("hand-overs java-range", "hand-overs new-java-uniform --since 1h", "hand-overs rc-new"),
    *(f"report {name}" for name in REPORTS),
    *(f"report {name} --cluster edge --limit 2 --since 6m" for name in REPORTS),
    *(f"report {name} --group nothing" for name in REPORTS),
    *("report skew --weights {folder}/lag.csv", "report skew --weights {folder}/none.csv"),
    *("report html {folder}/html --pages 8 --cluster edge", "report html {folder}/html-dev --group 'java-*'"),
    *("readiness", "readiness java-range", "readiness storm --json"),
    *("sql", "sql 'SELECT group_id, observed_at FROM current_group_snapshots ORDER BY 2, 1' --limit 7"),
    *("sql 'SELECT no'", "openmetrics", "openmetrics --since 1h --group 'java-*'", "views"),
    *("plan-migration --group java-range", "plan-migration --group kpy-range --listed range,cooperative-sticky"),
    *(f"report {name} --group 'java-*' --until 2026-11-21T11:00Z" for name in REPORTS),
    *("simulate {folder}/script.yaml --from-ledger java-range", "rehearse java-range --listener heard:Heard"),
)  # fmt: skip
ON_SMALL = (
    *("who a-2", "show", "show --group pay", "show --group pay --last", "show --findings", "show --coverage"),
    *("explain pay --generation 2", "timeline pay", "timeline --partition a-2", "audit", "hand-overs pay"),
    *("diff pay --from 1", "diff pay --scenarios baseline,other --generation 2", "readiness"),
    *("openmetrics", *(f"report {name}" for name in REPORTS), "report html {folder}/html-small"),
)
ALONE = (
    *("simulate {folder}/script.yaml", "simulate {folder}/script.yaml --table", "simulate {folder}/timed.yaml --table"),
    "simulate {folder}/script.yaml --table --metrics",
    *("simulate {folder}/script.yaml --compare range,cooperative-sticky,consumer", "simulate {folder}/nothing.yaml"),
    *("simulate {folder}/timed.yaml --compare range,consumer --summary", "simulate {folder}/script.yaml --compare x"),
    *("simulate {folder}/timed.yaml --compare range,consumer --html {folder}/compared.html", "simulate --table"),
    *("solve {folder}/solve.jsonl", "plan-migration --listed range --client java=2"),
    *(
        "plan-migration --listed range --client franz-go=1 --single-bounce",
        "simulate {folder}/timed.yaml --table --listener heard:Heard",
    ),
    *(
        "simulate {folder}/script.yaml --compare range,consumer --wide",
        "simulate {folder}/script.yaml {folder}/timed.yaml --summary",
    ),
    *("new-config -", "job-file", "who", "report", "report nothing", "--version", "explain"),
)
FILES = {
    "script.yaml": "id: a\ntopics: {orders: 4}\nevents:\n- {event: join, member: m1, topics: [orders]}\n"
    "- {event: join, member: m2, topics: [orders]}\n- {event: leave, member: m1}\n",
    "timed.yaml": "id: b\ntopics: {orders: 3}\ntimes: {round_trip_ms: 4, processing_ms: 50, records_per_second: 100}\n"
    "events:\n- {event: join, member: m1, topics: [orders], at_ms: 0}\n"
    "- {event: join, member: m2, topics: [orders], at_ms: 9000}\n",
    "solve.jsonl": '{"assignor": "range", "topics": {"t": 3}, "members": [{"id": "a", "topics": ["t"]}]}\nnonsense\n',
    "lag.csv": "topic,partition,lag\norders,0,100\norders,4,7\naudit,0,3\n",
    "heard.py": "class Heard:\n    def on_partitions_revoked(self, partitions, consumer):\n        pass\n\n"
    "    def on_partitions_assigned(self, partitions, consumer):\n        pass\n",
}
ASKED = {
    **{name: f"ledger.{name}()" for name in ("show", "groups", "findings", "coverage", "quarantine", "audit")},
    **{name: f"ledger.{name}()" for name in ("storms", "skew", "static_members", "stickiness", "racks", "joins")},
    **{name: f"ledger.{name}()" for name in ("migrations", "readiness", "unowned")},
    "who": "ledger.who('orders-4', at='2026-11-21T12:09Z')",
    "timeline": "ledger.timeline('java-*')",
    "owners": "ledger.owners('orders-4', group='java-*')",
    "sql": "ledger.sql('SELECT group_id, observed_at FROM current_group_snapshots ORDER BY 2, 1')",
    "group.show": "group.show()",
    "group.rebalance": "group.rebalance(4)",
    "group.explain": "group.explain(4)",
    "group.timeline": "group.timeline()",
    "group.audit": "group.audit()",
    "group.diff": "group.diff(2, 5)",
    "group.what_if": "group.what_if(1, generation=4)",
    "group.plan_migration": "ledger.group('java-range').plan_migration(['range', 'cooperative-sticky'])",
}


ALL = re.compile("")
PROGRESS = re.compile(r"^page \d+ of \d+: .* \.\.\.\n", re.MULTILINE)
"""Said only where pages take long."""


class Terminal(io.StringIO):
    """A terminal that is remembered."""

    def isatty(self) -> bool:
        """Say that it is one."""
        return True


def ran(words, *, terminal=False):
    """Return the exit code, what a command printed, and what it said on stderr."""
    from groupledger.cli import main

    if terminal:
        os.environ |= {"COLUMNS": "80", "TERM": "xterm-256color"}
    out, err, code = (Terminal() if terminal else io.StringIO()), io.StringIO(), "0"
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            main.main(shlex.split(words), "groupledger")
        except SystemExit as ended:
            code = str(ended.code or 0)
        except Exception as error:  # noqa: BLE001 - a bug is an outcome as well, and a change of it is shown
            err.write(f"{type(error).__name__}: {error}")
    os.environ.pop("COLUMNS", None)
    return f"exit {code}\n{out.getvalue()}\n--- stderr\n{err.getvalue()}"


def outputs(folder, only):
    """Yield the name and the text of each output whose name matches."""
    from groupledger.cli.json_schemas import FORMS

    places = {"demo": _demo(folder), "small": _small(folder)}
    for name, content in FILES.items():
        (folder / name).write_text(content)
    sys.path.insert(0, str(folder))
    os.chdir(folder)
    for words in filter(only.search, map("help: {}".format, _commands())):
        yield words, ran(f"{words.removeprefix('help: ')} --help")
    for words in filter(only.search, map("schema: {}".format, FORMS)):
        yield words, ran(words.replace(":", ""))
    asked = (
        [(each, "demo") for each in ON_DEMO] + [(each, "small") for each in ON_SMALL] + [(each, "") for each in ALONE]
    )
    for words, place in asked:
        line = words.format(folder=folder) + (f" --ledger {places[place]}" if place else "")
        for name, more, terminal in (("json", " --json", False), ("plain", "", False), ("80", "", True)):
            if only.search(f"{name} {place}: {words}"):
                yield f"{name} {place}: {words}", ran(line + more, terminal=terminal)
    yield from _notebook(places["demo"], only)
    os.chdir(ROOT)
    for page in sorted(folder.glob("*html*/*")) + sorted(folder.glob("*.html")):
        if only.search(f"page: {page.relative_to(folder)}"):
            yield f"page: {page.relative_to(folder)}", page.read_text()


def _commands(prefix="", command=None):
    import click

    from groupledger.cli import main

    command = command or main
    yield prefix.strip()
    if isinstance(command, click.Group):
        for name, each in command.commands.items():
            yield from _commands(f"{prefix} {name}", each)


def _demo(folder):
    from tests.docs.demo_ledger import unpack

    return unpack(folder)


def _small(folder):
    """Two rebalances with racks, a static member, two scenarios and a finding."""
    from tests.answers.histories import History, listed, rows_of
    from tests.answers.ledgers import write

    pay = (
        History("pay", topics=("a",)).state(1, "m/i a:0,1,2").state(2, "m/i a:0,1 | n a:2").state(3, "o/i a:0 | n a:2")
    )
    for row in pay.rows["group_snapshots"]:
        row["complete"] = True
    for row in pay.rows["member_snapshots"]:
        row["rack_id"] = "r"
    key = {"cluster_id": "dev", "group_id": "pay", "snapshot_id": "log/dev/pay/2"}
    result = {"round": 1, "moves": 2, "least_moves": 1, "verdict": "exact", "assignor": "range", "protocol": "EAGER"}
    results = [key | result | {"scenario": name, "least_moves_certainty": "exact"} for name in ("baseline", "other")]
    finding = key | {"offset": 2, "code": "DOUBLE_ASSIGNED", "severity": "error", "evidence": "x"}
    rows = rows_of(pay, topic_snapshots=[listed("a", 3)], rebalances=results, violations=[finding])
    return write(folder / "small", **rows)


def _notebook(place, only):
    import groupledger

    ledger = groupledger.open(str(place))
    names = {"ledger": ledger, "group": ledger.group("java-cooperative-sticky")}
    for name, question in ASKED.items():
        if not only.search(f"cell: {name}"):
            continue
        reply = eval(question, names)  # noqa: S307 - questions of this file
        frame = reply.to_pandas()
        frame = f"{frame.dtypes}\n{frame.to_csv()}"
        yield f"frame: {name}", frame
        yield f"cell: {name}", f"{reply!r}\n{reply._repr_html_()}\n{json.dumps(reply.to_dict(), default=str)}"


def _remember_queries():
    """Let readers of one place run a query once: the surfaces are what is compared here."""
    from groupledger.answers.reader import LedgerReader

    query, found = LedgerReader.query, {}

    def remembered(reader, sql, /, **values):
        key = reader._location, sql, repr(sorted(values.items()))
        if "kept_" in sql:
            return query(reader, sql, **values)
        if key not in found:
            found[key] = query(reader, sql, **values)
        return found[key]

    setattr(LedgerReader, "query", remembered)  # noqa: B010 - a method is replaced on purpose


def made(folder, only=ALL):
    """Return the texts by name, without the path of this folder and what differs from run to run."""
    import groupledger

    shutil.rmtree(folder, ignore_errors=True)
    (folder / "work").mkdir(parents=True)
    _remember_queries()
    texts = {}
    for name, text in outputs(folder / "work", only):
        texts[name] = (
            PROGRESS.sub("", text)
            .replace(str(folder / "work"), "FOLDER")
            .replace(str(Path(groupledger.__file__).parent), "HERE")
        )
    (folder / "texts.json").write_text(json.dumps(texts, indent=1))
    return texts


def digest(text):
    """Return the first 16 digits of SHA-256."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def _texts_of(revision):
    """Make the texts with the sources of another revision."""
    place = FOLDER / "sources"
    shutil.rmtree(place, ignore_errors=True)
    packed = subprocess.run(["git", "archive", revision, "src"], cwd=ROOT, check=True, capture_output=True).stdout  # noqa: S607
    with tarfile.open(fileobj=io.BytesIO(packed)) as archive:
        archive.extractall(place, filter="data")
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(place / "src"), str(ROOT)])}
    made_there = FOLDER / "other"
    words = [sys.executable, "-m", "tests.frozen.outputs", "--only-make", str(made_there)]
    subprocess.run(words, cwd=ROOT, env=environment, check=True)
    return json.loads((made_there / "texts.json").read_text())


def main(*words):
    """Compare with the manifest; exit with 1 if anything differs."""
    if words[:1] == ("--only-make",):
        made(Path(words[1]))
        return
    only = re.compile(words[words.index("--only") + 1]) if "--only" in words else ALL
    texts = made(FOLDER / "here", only)
    found = {name: digest(text) for name, text in texts.items()}
    manifest = json.loads(MANIFEST.read_text())
    kept = {name: each for name, each in manifest.items() if only.search(name)}
    if "--write" in words:
        now = {name: each for name, each in (manifest | found).items() if name in found or name not in kept}
        MANIFEST.write_text(json.dumps(now, indent=0) + "\n")
        return
    differing = [name for name in sorted({*kept, *found}) if kept.get(name) != found.get(name)]
    before = _texts_of(words[1]) if words[:1] == ("--against",) and differing else {}
    for name in differing:
        state = "differs" if name in kept and name in found else "is new" if name in found else "is gone"
        sys.stdout.write(f"{name}: {state}\n")
        old, new = (each.get(name, "").splitlines() for each in (before, texts))
        if before:
            sys.stdout.writelines(f"    {line}\n" for line in difflib.unified_diff(old, new, lineterm="", n=1))
    sys.stdout.write(f"{len(found):,} outputs, {len(differing):,} of them differ\n")
    sys.exit(bool(differing))


if __name__ == "__main__":
    main(*sys.argv[1:])
