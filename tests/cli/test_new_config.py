"""`groupledger new-config`, and what ships in the wheel beside the code."""

import subprocess
import sys
import zipfile
from pathlib import Path

from click.testing import CliRunner

from groupledger.cli.commands import main
from groupledger.cli.options import DEFAULT_CONFIG
from groupledger.config import load
from groupledger.config.loading import CAPTURES, SAMPLE_CLUSTERS, TEMPLATE, sample_settings

ROOT = Path(__file__).parents[2]


def test_it_writes_what_init_then_reads_and_overwrites_nothing(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    written = CliRunner().invoke(main, ["new-config"])
    assert (written.exit_code, written.stdout) == (0, ""), written.stderr
    assert load(Path(DEFAULT_CONFIG)).cluster_id == "local"
    Path(DEFAULT_CONFIG).write_text("cluster_id: mine\n")
    again = CliRunner().invoke(main, ["new-config"])
    assert again.exit_code == 2
    assert "groupledger.yaml is there already" in again.stderr
    assert Path(DEFAULT_CONFIG).read_text() == "cluster_id: mine\n"


def test_it_prints_it_where_the_file_is_a_dash():
    ran = CliRunner().invoke(main, ["new-config", "-"])
    assert (ran.exit_code, ran.stdout) == (0, TEMPLATE.read_text(encoding="utf-8"))


def test_a_folder_that_is_not_there_is_one_line():
    ran = CliRunner().invoke(main, ["new-config", "no/such/folder/a.yaml"])
    assert ran.exit_code == 2
    assert ran.stderr.splitlines()[0].startswith("groupledger: No such file or directory: no/such/folder/a.yaml")


def test_the_sample_is_of_every_captured_cluster():
    assert sorted(SAMPLE_CLUSTERS) == sorted(folder.name for folder in CAPTURES.iterdir() if folder.is_dir())
    assert all(Path(source["path"]).is_file() for source in sample_settings()["sources"])


def test_the_wheel_has_the_sample_and_the_template(tmp_path):
    command = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(tmp_path)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    [wheel] = tmp_path.glob("*.whl")
    names = set(zipfile.ZipFile(wheel).namelist())
    package = ROOT / "src"
    sources = [Path(source["path"]) for source in sample_settings()["sources"]]
    wanted = {path.relative_to(package).as_posix() for path in (TEMPLATE, *sources)}
    assert wanted <= names
