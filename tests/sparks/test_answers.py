"""The matrix sees a difference, and none in what is another one in every run."""

import pytest

from tests.sparks.answers import differences, digests

INGEST = {"run_id": "a", "result_digest": "d1", "accounts": [{"records": 3}]}
ANSWER = {"ingest": INGEST, "timings": {"read": 0.1}}


def test_what_no_two_runs_share_is_no_difference():
    other = {**ANSWER, "ingest": {**INGEST, "run_id": "b"}, "timings": {"read": 9.0, "more": 1}}
    assert differences([ANSWER], [other]) == []


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"result_digest": "d2"}, [".0.ingest.result_digest: 'd2', not 'd1'"]),
        ({"accounts": [{"records": 4}]}, [".0.ingest.accounts.0.records: 4, not 3"]),
        ({"accounts": []}, [".0.ingest.accounts.0.records: 'nothing', not 3", ".0.ingest.accounts.length: 0, not 1"]),
        ({"more": None}, [".0.ingest.more: None, not 'nothing'"]),
    ],
)
def test_every_other_difference_is_told_with_its_place(change, said):
    assert differences([{**ANSWER, "ingest": {**INGEST, **change}}], [ANSWER]) == said


def test_an_answer_without_a_digest_is_refused():
    assert digests(ANSWER) == ("d1",)
    for lacking in ({"status": "done"}, {"run": {"result_digest": None}}):
        with pytest.raises(AssertionError, match="result digests"):
            digests(lacking)
