"""Codes of findings: declared once, stable in tables, and named by a person."""

import ast
from pathlib import Path

import pytest

from groupledger.core.faults import Fault
from groupledger.core.rebalance.findings import BY_CODE, BY_RECORDED, INVARIANTS, failing

SOURCE = Path(__file__).parents[2] / "src" / "groupledger"
RECORDED = {
    *("DOUBLE_ASSIGNED", "ASSIGNED_NOT_SUBSCRIBED", "TOPIC_REPEATED", "STALE_CLAIM", "CLAIM_DIFFERS"),
    *("REWRITE_DIFFERS", "OFFSET_REWRITTEN", "LEFT_OUT", "HANDED_OVER"),
}
"""What ledgers hold since the first version."""


def test_each_code_stands_once_and_tables_keep_theirs():
    assert len(BY_CODE) == len(BY_RECORDED) == len(INVARIANTS)
    assert BY_RECORDED.keys() >= RECORDED
    assert not {each.code for each in INVARIANTS} & {
        each.recorded_as for each in INVARIANTS if each.recorded_as != each.code
    }


def test_no_code_is_written_down_elsewhere():
    codes = BY_CODE.keys() | BY_RECORDED.keys()
    found = []
    for path in SOURCE.rglob("*.py"):
        if path != SOURCE / "core" / "rebalance" / "findings.py" and path.stem not in (
            "segments",
            "record_batches",
        ):  # another thing is left out there
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                if isinstance(node, ast.Constant) and node.value in codes:
                    found.append(f"{path.relative_to(SOURCE)}:{node.lineno} {node.value}")
    assert found == []


@pytest.mark.parametrize(
    ("words", "found"),
    [
        ((), set()),
        (("UNOWNED,DOUBLE_OWNED",), {"UNOWNED", "DOUBLE_OWNED"}),
        ((" unowned ,", "Error"), {"UNOWNED", "error"}),
        (("HANDED_OVER",), {"HANDED_OVER_BEFORE_REVOKED"}),
        (("warning", "info"), {"warning", "info"}),
    ],
)
def test_codes_and_severities_are_named_in_any_case(words, found):
    assert failing(words) == found


@pytest.mark.parametrize("word", ["UNOWND", "all", "errors", "\x1b[2J"])
def test_another_word_is_refused_with_those_there_are(word):
    with pytest.raises(Fault, match=r"known: UNOWNED, .*, error, warning, info") as caught:
        failing((f"UNOWNED,{word}",))
    assert caught.value.code == "UNKNOWN_CODE"
