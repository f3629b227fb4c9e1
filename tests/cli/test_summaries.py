"""What a run prints about itself, from values made by hand."""

import json
from dataclasses import replace

import pytest

from groupledger.answers.audit import SAME
from groupledger.cli.output import Output, mark
from groupledger.cli.runs import (
    WORDS,
    explain_verdicts,
    print_accounts,
    print_assign,
    print_timings,
    print_verdicts,
)
from groupledger.core.rebalance.registry import NOT_OF_3_7_1
from groupledger.core.rebalance.verdict import Verdict
from groupledger.pipeline.assign import AssignSummary
from groupledger.pipeline.frames import GroupVerdicts, total
from groupledger.pipeline.invocation import Account

FOR_PEOPLE = Output(as_json=False)


def account(records, **classes):
    empty = {"used": {}, "unused": {}, "tombstones": {}, "quarantined": {}}
    return Account(cluster_id="dev", records=records, duplicates=classes.pop("duplicates", 0), **empty | classes)


def verdicts(group_id="pay", **counted):
    words = {name.replace("_", "-"): number for name, number in counted.items()}
    return GroupVerdicts("dev", group_id, "classic", ("range",), 5, 0, 4, 3, words)


def words(capsys):
    return [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()]


@pytest.mark.parametrize(
    ("records", "sign"),
    [(12, "\N{CHECK MARK}"), (13, "\N{BALLOT X}")],
)
def test_an_account_that_adds_up_is_marked_and_one_that_does_not_is_too(capsys, records, sign):
    kinds = {"used": {"GroupMetadata": 3}, "unused": {"OffsetCommit": 4}, "quarantined": {"TRUNCATED": 2}}
    print_accounts(FOR_PEOPLE, [account(records, tombstones={"GroupMetadata": 1}, duplicates=2, **kinds)])
    said = words(capsys)
    assert f"dev {records} 3 4 1 2 2 {sign}" in said
    assert said[4:] == [
        "used GroupMetadata 3",
        "unused OffsetCommit 4",
        "tombstones GroupMetadata 1",
        "quarantined TRUNCATED 2",
    ]


def test_lines_and_rows_stand_above_the_records_they_became(capsys):
    counts = {"lines": 8, "rows": 2, "blank": 1, "listings": {"listed": 3, "BAD_MOMENT": 1}}
    print_accounts(FOR_PEOPLE, [replace(account(5, used={"GroupMetadata": 5}), **counts)])
    said = words(capsys)
    assert said[:2] == ["cluster lines in + table rows = records + topic listings + blank", "dev 8 2 5 4 1"]
    assert "dev 5 5 0 0 0 0 \N{CHECK MARK}" in said
    assert said[-2:] == ["listings BAD_MOMENT 1", "listings listed 3"]


@pytest.mark.parametrize(
    ("counted", "equal"),
    [
        ({"exact": 4, "no_members": 1}, "4/4 \N{CHECK MARK}"),
        ({"exact": 2, "equal_sets": 1, "topic_unknown_to_leader": 1, "rewrite": 1}, "4/4 \N{CHECK MARK}"),
        ({"exact": 2, "valid_different": 3}, "2/5 exact 2, valid-different 3"),
        ({"invalid": 1}, "0/1 \N{BALLOT X}"),
        ({"no_members": 2}, "-"),
        ({}, "-"),
    ],
)
def test_equal_counts_what_can_be_compared(capsys, counted, equal):
    print_verdicts(FOR_PEOPLE, [verdicts(**counted)])
    assert words(capsys)[1].startswith(f"pay classic 0-4 range 3 {equal}")


def test_verdicts_in_all_are_explained(capsys):
    groups = [verdicts(exact=2, invalid=1), verdicts("audit", exact=1)]
    assert total(groups) == {"exact": 3, "invalid": 1}
    explain_verdicts(FOR_PEOPLE, total(groups))
    assert words(capsys)[1:] == [
        "exact 3 equal to the recorded assignment",
        "invalid 1 breaks a rule any assignor must keep",
    ]


def test_the_words_are_about_verdicts_that_exist():
    known = {each.text for each in Verdict}
    assert known.issuperset(WORDS.keys() - {NOT_OF_3_7_1})
    assert any(each.startswith(NOT_OF_3_7_1) for each in known)
    assert known.issuperset(SAME)


SUMMARY = AssignSummary(
    run_id="r1", attempt_id="a1", scenario="baseline", already_committed=True, verdict="done", groups_in=3,
    outcomes={"ASSIGNED": 2, "EMPTY": 1}, verdicts={"exact": 2, "not-compared": 1},
    sums={"moves": 5, "least_moves": 4, "unassigned": 0}, rows={"rebalances": 3}, quarantined=0, result_digest="d",
    timings={"look": 0.5, "read": 1.25},
)  # fmt: skip


def test_an_assign_says_what_it_did(capsys):
    print_assign(FOR_PEOPLE, SUMMARY)
    print_timings(FOR_PEOPLE, SUMMARY.timings)
    said = words(capsys)
    assert "assign r1 (already committed: nothing changed)" in said
    assert "scenario baseline: 3 rebalances in; ASSIGNED 2, EMPTY 1 out" in said
    assert "moves 5, least moves 4, unassigned 0" in said
    assert said[-1] == "together 1.75"
    assert not any("keep the results" in each for each in said)
    print_assign(FOR_PEOPLE, replace(SUMMARY, since_run="r0"))
    assert "groups without newer facts keep the results of run r0" in words(capsys)


def test_under_json_tables_are_silent_and_the_result_is_one_line(capsys):
    output = Output(as_json=True)
    print_assign(output, SUMMARY)
    output.result({"summary": SUMMARY})
    out = capsys.readouterr().out
    assert json.loads(out)["summary"]["verdicts"] == {"exact": 2, "not-compared": 1}
    assert out.count("\n") == 1


def test_a_stream_without_the_sign_gets_a_word(monkeypatch):
    monkeypatch.setattr("sys.stdout", type("Ascii", (), {"encoding": "ascii"})())
    assert (mark(True), mark(False)) == ("ok", "WRONG")
