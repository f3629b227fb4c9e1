"""What an answer of `show` looks like, from values made by hand."""

import json
from datetime import UTC, datetime, timedelta

import pytest
from click.testing import CliRunner

from groupledger.answers.at_a_glance import Listing
from groupledger.answers.explanation import MemberMove, Rebalance, Result
from groupledger.cli import main
from groupledger.cli.answers import LOWER_BOUND, WHY_EMPTY, as_json, print_answer
from groupledger.cli.output import Output
from groupledger.core.moments import iso
from groupledger.core.rebalance.least_moves import LeastMovesCertainty
from tests.answers.ledgers import write


def at(minute):
    return datetime(2026, 11, 21, 14, minute, tzinfo=UTC)


def said(capsys, answer):
    print_answer(Output(as_json=False), answer)
    return capsys.readouterr().out


REBALANCE = Rebalance(
    "dev", "pay", "classic", "log/dev/0/9", "generation", 0, 3, None, "range", "Stable", True, at(3),
    (MemberMove("m1", None, None, True, (("a", 0), ("a", 1)), (("a", 0),)),
     MemberMove("m2", None, None, False, (), ())),
    (Result("baseline", "range", "EAGER", "ASSIGNED", "exact", 1, 1, 0, False, "lower-bound", 1, "exact", ("a", "b")),
     Result("older", "range", "EAGER", "ASSIGNED", "exact", 1, 1, 0, False, None, None, None, None),
     Result("what-if", "range", "EAGER", "ASSIGNED", "not-compared", 1, None, 0, False,
            "not-applicable: topic-unknown", None, "not-applicable: not-compared", None)),
    ("STALE_CLAIM: m1 said 2",), ("log/dev/0/11",), ("fold-cut: the log ends here",), ("a", "b"),
)  # fmt: skip


def test_a_rebalance_is_members_results_and_findings(capsys):
    out = said(capsys, REBALANCE)
    lines = [line.split() for line in out.splitlines()]
    assert ["m1", "a:0-1", "a:0", "-", "a:1"] in lines
    assert ["m2", "(gone)", "-", "-", "-", "-"] in lines
    assert ["baseline", "range", "EAGER", "ASSIGNED", "exact", "1", "1", "or", "more", "0", "no"] in lines
    assert ["older", "range", "EAGER", "ASSIGNED", "exact", "1", "1", "0", "no"] in lines
    assert [
        "what-if",
        "range",
        "EAGER",
        "ASSIGNED",
        "not-compared",
        "1",
        *["topic", "not", "listed", "then"],
        "0",
        "no",
    ] in lines
    said_of_records = [line for line in out.splitlines() if line.startswith("whose")]
    assert said_of_records == [
        "whose algorithm (scenario baseline): exact as a or b",
        "whose algorithm (scenario older): not known: an older groupledger computed this; "
        "`groupledger assign` computes it again",
    ]
    assert "finding: STALE_CLAIM: m1 said 2" in out
    assert "gap since the snapshot before: fold-cut: the log ends here" in out
    assert "in no topic listing at that time, so that partition counts are not known: a, b" in out
    assert "other records of this generation: log/dev/0/11" in out


def test_the_words_for_the_least_moves_are_those_of_the_ledger():
    assert LeastMovesCertainty.LOWER_BOUND.text == LOWER_BOUND


def test_a_listing_says_what_it_left_off(capsys):
    out = said(
        capsys, [Listing("groups", ("group_id", "members"), (("pay", 1200),), 7), Listing("runs", ("kind",), (), 0)]
    )
    lines = [" ".join(line.split()) for line in out.splitlines() if line]
    left_off = ["groups", "group id members", "pay 1,200", "... and 6 more (--limit)"]
    assert lines == [*left_off, "runs", "none: no job has committed anything yet"]


@pytest.mark.parametrize("title", sorted(WHY_EMPTY))
def test_an_empty_listing_says_why(capsys, title):
    assert said(capsys, [Listing(title, ("group_id",), (), 0)]).split("none: ")[1].strip() == WHY_EMPTY[title]


@pytest.mark.parametrize("words", [(), ("--findings",), ("--coverage",), ("--quarantine",)])
def test_a_ledger_without_a_record_says_so(tmp_path, words):
    ran = CliRunner().invoke(main, ["show", *words, "--ledger", write(tmp_path)])
    assert "none: the ledger holds no record of a group yet: run `groupledger ingest` first" in ran.stdout


NEXT_DAY = at(1) + timedelta(days=1)
TIMES = {
    "one day": ((at(1), at(2)), "runs (2026-11-21, UTC)", ["14:01:00.000", "14:02:00.000"]),
    "two days": ((at(1), NEXT_DAY), "runs (UTC)", ["2026-11-21 14:01:00", "2026-11-22 14:01:00"]),
    "nothing known": ((None, at(2)), "runs (2026-11-21, UTC)", ["-", "14:02:00.000"]),
}


@pytest.mark.parametrize(("moments", "title", "told"), TIMES.values(), ids=TIMES)
def test_the_date_of_a_listing_is_said_once_where_a_terminal_is_narrow(capsys, monkeypatch, moments, title, told):
    listing = [Listing("runs", ("at",), tuple((moment,) for moment in moments), len(moments))]
    in_full = [iso(moment) if moment else "-" for moment in moments]
    assert said(capsys, listing).split("\n")[1:-1] == ["runs", "at", *in_full]
    monkeypatch.setenv("COLUMNS", "80")
    assert said(capsys, listing).split("\n")[1:-1] == [title, "at", *told]


@pytest.mark.parametrize("answer", [REBALANCE, [Listing("runs", ("at",), ((at(1),),), 1)]])
def test_json_is_one_line_and_says_the_same(capsys, answer):
    output = Output(as_json=True)
    print_answer(output, answer)
    output.result(as_json(answer))
    out = capsys.readouterr().out
    assert out.count("\n") == 1
    assert "2026-11-21T14:0" in json.dumps(json.loads(out))
