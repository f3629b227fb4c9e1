"""The README: short, in its order, with a picture that is current, and the version that the changelog begins with."""

import re
from pathlib import Path

import groupledger
from tests.docs.terminal import COMMANDS, PICTURE, drawn

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
CHANGELOG = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
WORDS = 900
SECTIONS = (
    "Quickstart",
    "What it is not",
    "From your cluster",
    "In your Spark job",
    "In a notebook",
    "On a schedule",
    "From a checkout",
    "Status and versions",
    "Documentation",
)
ENTRY_WORDS = 45
NOT_PUBLISHED = re.compile(r"pip install '?groupledger")


def test_it_can_be_read_in_four_minutes():
    assert len(README.split()) <= WORDS


def test_it_has_its_sections_in_order():
    assert tuple(re.findall(r"^## (.+)$", README, re.MULTILINE)) == SECTIONS


def test_it_has_one_picture_which_shows_what_the_commands_print_now():
    assert re.findall(r"!\[.*?\]\((.*?)\)", README, re.DOTALL) == [PICTURE.relative_to(ROOT).as_posix()]
    assert PICTURE.read_text(encoding="utf-8") == drawn(), "draw it: python -m tests.docs.terminal"


def test_the_picture_needs_no_network_and_shows_each_command():
    picture = PICTURE.read_text(encoding="utf-8")
    assert re.findall(r"(?:url\(|href=|src=)[\"']?https?:", picture) == []
    assert all(command.split()[0] in picture for command in COMMANDS)


def test_it_installs_from_where_the_package_is():
    """No index has a package of this name: what is installed is this folder, or a wheel of it."""
    assert NOT_PUBLISHED.findall(README) == []


def test_the_version_is_that_of_the_newest_release_in_the_changelog():
    releases = re.findall(r"^## (.+)$", CHANGELOG, re.MULTILINE)
    assert releases[:2] == ["Unreleased", groupledger.__version__]
    assert f"**{groupledger.__version__}**" in README


def test_an_entry_of_the_changelog_is_one_line_under_what_it_is():
    kinds = re.findall(r"^### (.+)$", CHANGELOG, re.MULTILINE)
    assert set(kinds) == {"Added", "Changed", "Fixed"}
    entries = [line for line in CHANGELOG.splitlines() if line.startswith("- ")]
    assert entries
    assert [entry for entry in entries if len(entry.split()) > ENTRY_WORDS] == []
    others = [line for line in CHANGELOG.splitlines() if line and not line.startswith(("- ", "#"))]
    assert len(others) <= 2  # what the page is; no entry goes on below its line
