"""The notebooks run from top to bottom on the demo's ledger, and draw their pictures."""

import base64
import os

import nbformat
import pytest
from nbclient import NotebookClient

from tests.demo.conftest import ROOT

pytestmark = pytest.mark.spark

NOTEBOOKS = ROOT / "notebooks"


@pytest.mark.long
@pytest.mark.parametrize(
    ("name", "number_of_pictures"),
    [("past_rebalance", 2), ("post_mortem", 2), ("choosing_an_assignor", 0), ("migration", 1)],
)
def test_a_notebook_runs(demonstrated, demo_config, tmp_path, name, number_of_pictures):
    notebook = nbformat.read(NOTEBOOKS / f"{name}.ipynb", as_version=4)
    client = NotebookClient(
        notebook, timeout=300, kernel_name="python3", resources={"metadata": {"path": str(NOTEBOOKS)}}
    )
    client.execute(env=os.environ | {"GROUPLEDGER_LEDGER": demo_config.ledger.location})
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", [])]
    pictures = [output["data"]["image/png"] for output in outputs if "image/png" in output.get("data", {})]
    assert [output for output in outputs if output["output_type"] == "error"] == []
    assert len(pictures) == number_of_pictures
    for number, picture in enumerate(pictures):
        drawn = base64.b64decode(picture)
        (tmp_path / f"{number}.png").write_bytes(drawn)
        assert drawn.startswith(b"\x89PNG")
        assert len(drawn) > 10_000
