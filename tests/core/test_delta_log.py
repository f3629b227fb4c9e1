"""What a Delta table gained: no row that came is missed, and rows that were only moved are not read again."""

import random

import pytest

from groupledger.sources.delta_growth import AddedFile, added_since, is_read_as_parquet


def add(path, *, moved=False, vector=False, **values):
    action = {"path": path, "dataChange": not moved, "partitionValues": values}
    return {"add": action | ({"deletionVector": {"storageType": "u"}} if vector else {}), "remove": None}


def remove(path, *, moved=False):
    return {"remove": {"path": path, "dataChange": not moved}, "metaData": None}


def paths(*commits):
    found = added_since(commits)
    return None if found is None else [file.path for file in found]


KNOWN = [
    pytest.param([], [], id="nothing"),
    pytest.param([[{"commitInfo": None}]], [], id="a commit without files"),
    pytest.param([[add("b"), add("a")], [add("c")]], ["a", "b", "c"], id="appends"),
    pytest.param([[remove("old", moved=True), add("packed", moved=True)]], [], id="older rows are packed"),
    pytest.param(
        [[add("a")], [remove("a", moved=True), remove("old", moved=True), add("packed", moved=True)]],
        ["packed"],
        id="new rows are packed with older ones",
    ),
    pytest.param(
        [[add("a")], [remove("a", moved=True), add("p", moved=True)], [remove("p", moved=True), add("q", moved=True)]],
        ["q"],
        id="packed twice",
    ),
    pytest.param([[add("a")], [remove("a")]], [], id="rows that came and went"),
    pytest.param([[remove("old"), add("new")]], ["new"], id="a file is written anew"),
    pytest.param([[remove("old"), add("old", vector=True)]], [], id="some older rows are deleted"),
    pytest.param([[add("a")], [remove("a"), add("a", vector=True)]], None, id="some new rows are deleted"),
    pytest.param([[add("a", vector=True)], [remove("a", moved=True), add("b", moved=True)]], ["b"], id="and purged"),
    pytest.param([[remove("old")], [add("old")]], ["old"], id="restored"),
    pytest.param([[add("a"), {"metaData": {"id": "x"}}]], None, id="the schema changed"),
    pytest.param([[add("a")], [{"protocol": {"minReaderVersion": 3}}]], None, id="the protocol changed"),
]


@pytest.mark.parametrize(("commits", "expected"), KNOWN)
def test_the_files_that_may_hold_new_rows(commits, expected):
    assert paths(*commits) == expected


def test_a_file_says_its_values_of_partition_columns():
    assert added_since([[add("topic=a/1", topic="a", date=None)]]) == [
        AddedFile("topic=a/1", {"topic": "a", "date": None})
    ]


@pytest.mark.parametrize("seed", range(200))
def test_no_row_is_missed_whatever_was_done_to_the_table(seed):
    """A table of rows in files, changed at random; files that were there at first have been read."""
    dice = random.Random(seed)  # noqa: S311 - seeded on purpose
    numbers = iter(range(10**6))
    live = {f"f{next(numbers)}": {next(numbers), next(numbers)} for _ in range(3)}
    known = set().union(*live.values())
    held, commits = dict(live), []
    for _ in range(dice.randrange(8)):
        some = dice.sample(sorted(live), dice.randrange(len(live) + 1))
        kind = dice.choice(["append", "pack", "rewrite", "overwrite"])
        gone = [] if kind == "append" else sorted(live) if kind == "overwrite" else some
        rows = set().union(*(live.pop(path) for path in gone))
        if kind in ("append", "overwrite"):
            rows = {next(numbers) for _ in range(dice.randrange(4))}
        elif kind == "rewrite":
            rows = {row for row in rows if dice.random() < 0.7} | {next(numbers)}
        name, moved = f"f{next(numbers)}", kind == "pack"
        live[name] = held[name] = rows
        commits.append([*(remove(path, moved=moved) for path in gone), add(name, moved=moved)])
    read = set().union(*(held[path] for path in paths(*commits)))
    now = set().union(*live.values())
    assert now - known <= read
    assert set(paths(*commits)) <= set(live)


def test_only_tables_of_plain_files_are_read_so():
    assert is_read_as_parquet(["appendOnly", "deletionVectors", "columnMapping"], {})
    assert is_read_as_parquet([], {"delta.columnMapping.mode": "none"})
    assert not is_read_as_parquet(["columnMapping"], {"delta.columnMapping.mode": "name"})
    assert not is_read_as_parquet(["appendOnly", "typeWidening"], {})
