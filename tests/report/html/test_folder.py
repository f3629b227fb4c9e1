"""A folder of pages: each page whole, only our own files replaced or removed, whenever it is ended."""

import json

import pytest

from groupledger.core.faults import Fault
from groupledger.report.html.written import LIST, ReportFolder


def report(place, *names):
    folder = ReportFolder(place)
    for name in names:
        folder.write(name, f"page {name}")
    folder.finish("index")


def names(place):
    return sorted(path.name for path in place.iterdir())


def test_a_new_folder_is_made_with_its_parents(tmp_path):
    report(tmp_path / "a" / "b", "group-x.html")
    assert names(tmp_path / "a" / "b") == [LIST, "group-x.html", "index.html"]


def test_pages_that_are_no_longer_linked_to_are_removed_and_other_files_stay(tmp_path):
    report(tmp_path, "group-x.html", "group-y.html")
    (tmp_path / "notes.txt").write_text("mine")
    report(tmp_path, "group-y.html", "group-z.html")
    assert names(tmp_path) == [LIST, "group-y.html", "group-z.html", "index.html", "notes.txt"]
    assert json.loads((tmp_path / LIST).read_text())["files"] == ["group-y.html", "group-z.html", "index.html"]


@pytest.mark.parametrize("files", [{"notes.txt": ""}, {"index.html": "mine"}, {LIST: "not json"}, {LIST: "[]"}])
def test_a_folder_that_is_not_ours_is_refused_and_left_as_it_is(tmp_path, files):
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    with pytest.raises(Fault, match="no report of ours") as fault:
        report(tmp_path, "group-x.html")
    assert fault.value.code == "FOREIGN_FOLDER"
    assert names(tmp_path) == sorted(files)


def test_a_file_is_no_folder(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(Fault, match="is a file"):
        ReportFolder(tmp_path / "file")


def test_a_list_that_names_files_elsewhere_removes_none(tmp_path):
    (tmp_path / "out").mkdir()
    for name in ("precious.txt", "group-a.html"):
        (tmp_path / name).write_text("mine")
    (tmp_path / "out" / "notes.txt").write_text("mine")
    named = ["../precious.txt", "../group-a.html", str(tmp_path / "precious.txt"), "notes.txt", "."]
    (tmp_path / "out" / LIST).write_text(json.dumps({"made_by": "groupledger report html", "files": named}))
    report(tmp_path / "out", "group-x.html")
    assert names(tmp_path) == ["group-a.html", "out", "precious.txt"]
    assert "notes.txt" in names(tmp_path / "out")


def test_a_link_in_the_place_of_a_page_is_replaced_and_what_it_leads_to_is_not(tmp_path):
    (tmp_path / "precious.txt").write_text("mine")
    report(tmp_path / "out", "group-x.html")
    for name in ("index.html", "group-x.html.new"):
        (tmp_path / "out" / name).unlink(missing_ok=True)
        (tmp_path / "out" / name).symlink_to(tmp_path / "precious.txt")
    report(tmp_path / "out", "group-x.html")
    assert (tmp_path / "precious.txt").read_text() == "mine"
    assert (tmp_path / "out" / "index.html").read_text() == "index"


@pytest.mark.parametrize("writes", range(1, 9))
def test_ended_at_any_write_every_page_is_whole_and_the_next_report_is_as_if_nothing_had_been(
    tmp_path, monkeypatch, writes
):
    report(tmp_path, "group-old.html")
    left = iter(range(writes))
    put = ReportFolder._put

    def ended(self, name, text):
        if next(left, None) is None:
            (tmp_path / f"{name}.new").write_text("ha")  # half of it
            raise KeyboardInterrupt
        put(self, name, text)

    monkeypatch.setattr(ReportFolder, "_put", ended)
    finished = True
    try:
        report(tmp_path, "group-a.html", "group-b.html")
    except KeyboardInterrupt:
        finished = False
    assert finished == (writes >= 7)
    whole = {path.name: path.read_text() for path in tmp_path.glob("*.html")}
    assert all(text in (f"page {name}", "index") for name, text in whole.items())
    assert "index.html" in whole
    monkeypatch.undo()
    report(tmp_path, "group-b.html")
    assert sorted(path.name for path in tmp_path.glob("*.html")) == ["group-b.html", "index.html"]
    assert not list(tmp_path.glob("*.new"))
