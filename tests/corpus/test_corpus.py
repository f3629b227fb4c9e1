"""Everything that is in the histories of the corpus is found, by name, and nothing else."""

import json

import pytest

from corpus import score
from groupledger.answers.causes import CauseKind
from groupledger.answers.explanation import explain
from groupledger.answers.queries import matching, records
from groupledger.answers.reader import LedgerReader
from groupledger.core.rebalance.findings import BY_CODE
from tests.corpus import history
from tests.corpus.every import every
from tests.corpus.found import found, ledger_of, scored_lines
from tests.corpus.history import joined, labels, names, read, text_of
from tests.corpus.page import PAGE, with_table

IMPOSSIBLE = {
    CauseKind.CONVERTED.value: "both types have the number at which a group is converted, and a label is of a number; "
    "tests/answers/test_conversions.py has such groups",
    CauseKind.COORDINATOR_MOVED.value: "the histories are exported lines, which have no leader epochs; "
    "tests/answers/test_coordinator_moves.py has such groups",
    "ASSIGNED_WITHOUT_TOPICS": "no member of a history subscribes to nothing; "
    "tests/core/protocol/test_generations.py has one",
}
"""Codes and causes that no label can name, with the reason."""


@pytest.fixture(scope="module")
def reader(tmp_path_factory):
    """A ledger of all histories, made with the labels out of sight."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(history, "LABELS", "not there")
        return LedgerReader(ledger_of(tmp_path_factory.mktemp("corpus"), names()))


@pytest.fixture(scope="module")
def answers(reader):
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(history, "LABELS", "not there")
        return found(reader, names(), joined())


def told(one):
    """What was found in a history, in the form of its label."""
    keys = ("code", "severity", "records", "generation")
    findings = [
        dict(zip(keys, (each.code, each.severity, each.records, each.generation), strict=True)) for each in one.findings
    ]
    return {"findings": findings, "causes": one.causes}


@pytest.mark.slow
def test_what_is_in_each_history_is_found_and_nothing_else(answers):
    expected = {name: {key: line[key] for key in ("findings", "causes")} for name, line in labels().items()}
    assert {name: told(one) for name, one in answers.items()} == expected


@pytest.mark.slow
def test_groupledger_has_the_full_score(answers, tmp_path, capsys):
    assert scored(tmp_path, {line["history"]: line for line in scored_lines(answers)}) == 0
    assert "clean histories with a finding: 0 of 200" in capsys.readouterr().out


@pytest.mark.slow
def test_explain_says_the_same_as_what_was_found(reader):
    """Asked for one generation of each cause, as a person would; records of one generation stand together in labels."""
    seen = set()
    for name, line in sorted(labels().items()):
        if sum(causes.count("group-born") for causes in line["causes"].values()) > 1:
            continue  # a name with two lives has two states of one number
        for generation, causes in line["causes"].items():
            if generation == "deleted" or seen.issuperset(causes):
                continue
            [group] = groups_of(reader, name)
            explained = explain(reader, group, name, int(generation))
            kinds = sorted(each.kind.value for each in explained.causes)
            if not explained.rebalance.others:
                assert kinds == causes, (name, generation)
                seen.update(kinds)
    by_offset = {CauseKind.GROUP_DELETED.value, CauseKind.MEMBER_REPLACED.value}
    assert seen == {kind.value for kind in CauseKind} - by_offset - IMPOSSIBLE.keys()


def groups_of(reader, name):
    query = f"SELECT DISTINCT t.group_id FROM current_group_snapshots t WHERE {matching('t.', cluster_id=name)}"
    return [row["group_id"] for row in records(reader, query)]


def test_a_deletion_is_explained_where_it_is_the_last_record(tmp_path):
    [name] = [name for name, line in labels().items() if line["title"] == "an-empty-group-is-deleted"]
    of_one = LedgerReader(ledger_of(tmp_path, [name]))
    assert [each.kind for each in explain(of_one, "orders", name).causes] == [CauseKind.GROUP_DELETED]


def test_a_takeover_in_the_same_generation_is_explained_by_its_offset(tmp_path):
    [name] = [name for name, line in labels().items() if line["title"] == "two-processes-share-an-instance-id"]
    of_one = LedgerReader(ledger_of(tmp_path, [name]))
    [group] = groups_of(of_one, name)
    joined_in = explain(of_one, group, name, 1)
    assert [each.snapshot_kind for each in joined_in.rebalance.others] == ["rewrite", "rewrite"]
    for other in joined_in.rebalance.others:
        taken = explain(of_one, group, name, offset=other.offset)
        assert [each.kind for each in taken.causes] == [CauseKind.MEMBER_REPLACED]


def test_every_code_and_every_cause_has_a_history():
    codes = {each["code"] for line in labels().values() for each in line["findings"]}
    causes = {cause for line in labels().values() for of_one in line["causes"].values() for cause in of_one}
    wanted = {*BY_CODE, *(kind.value for kind in CauseKind)}
    assert codes | causes == wanted - IMPOSSIBLE.keys()


def test_there_are_as_many_as_the_page_says():
    lines = list(labels().values())
    of_origin = {
        origin: [line for line in lines if line["origin"] == origin] for origin in ("recorded", "made", "clean")
    }
    assert {origin: len(some) for origin, some in of_origin.items()} == {"recorded": 37, "made": 84, "clean": 200}
    assert not [line for line in of_origin["clean"] if line["findings"]]


def test_the_scripts_make_the_corpus_as_it_is():
    made = {each.name: each for each in every()}
    assert sorted(made) == names()
    for name, each in made.items():
        assert (each.offsets, each.topics) == read(name), each.title
    lines = text_of(made[name].label_line for name in sorted(made))
    assert lines == (history.CORPUS / history.LABELS).read_text(encoding="utf-8")
    assert {name: list(each.joined) for name, each in made.items() if each.joined} == joined()


def test_the_page_has_the_tables_of_the_labels():
    page = PAGE.read_text(encoding="utf-8")
    assert with_table(page) == page


def test_a_tool_that_finds_everything_scores_so(tmp_path, capsys):
    assert scored(tmp_path, perfect()) == 0
    said = capsys.readouterr().out
    assert "clean histories with a finding: 0 of 200" in said
    [total, _] = [line.split()[1:] for line in said.splitlines() if line.startswith("all ")]
    assert total[1:] == ["0", "0"]


def test_what_a_tool_makes_up_or_misses_counts(tmp_path, capsys):
    lines = perfect()
    clean = next(name for name, line in labels().items() if line["origin"] == "clean")
    storm = next(name for name, line in labels().items() if line["title"] == "storm/storm")
    lines[clean]["findings"] = ["UNOWNED"]
    lines[storm]["findings"].remove("NEVER_SETTLES")
    del lines[storm]["causes"]["7"]
    assert scored(tmp_path, lines) == 1
    said = {line.split()[0]: line.split()[2:] for line in capsys.readouterr().out.splitlines() if line[:1].isalnum()}
    assert (said["UNOWNED"], said["NEVER_SETTLES"], said["not-shown"]) == (["1", "0"], ["0", "1"], ["0", "1"])


def test_a_tool_may_leave_causes_out(tmp_path, capsys):
    lines = {name: {"history": name, "findings": line["findings"]} for name, line in perfect().items()}
    assert scored(tmp_path, lines) == 0
    assert "causes: none given" in capsys.readouterr().out


def test_a_history_that_is_not_there_is_refused(tmp_path, capsys):
    assert scored(tmp_path, {"x": {"history": "x", "findings": []}}) == 2
    assert "no history is called 'x'" in capsys.readouterr().err


@pytest.mark.parametrize("text", ["", "{", "[]", '{"findings": []}'])
def test_a_line_that_names_no_history_is_refused(tmp_path, capsys, text):
    path = tmp_path / "found.jsonl"
    path.write_text(f"{text}\n", encoding="utf-8")
    assert score.main([str(path)]) == 2
    assert "line 1 is" in capsys.readouterr().err


def perfect():
    return {
        name: {"history": name, "findings": [each["code"] for each in line["findings"]], "causes": dict(line["causes"])}
        for name, line in labels().items()
    }


def scored(folder, lines):
    path = folder / "found.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines.values()), encoding="utf-8")
    return score.main([str(path)])
