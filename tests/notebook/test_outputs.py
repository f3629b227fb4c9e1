"""The notebooks run from top to bottom on the demo's ledger, and the outputs they are kept with are those of today."""

import base64

import nbformat
import pytest

from tests.docs.demo_ledger import unpack
from tests.notebook.outputs import NOTEBOOKS, run, shown

PICTURES = {"past_rebalance": 2, "post_mortem": 2, "choosing_an_assignor": 0, "migration": 1, "your_own_dataframes": 1}
PATHS = sorted(NOTEBOOKS.glob("*.ipynb"))


@pytest.fixture(scope="module")
def ledger(tmp_path_factory):
    return unpack(tmp_path_factory.mktemp("notebooks"))


@pytest.mark.slow
@pytest.mark.parametrize("path", PATHS, ids=lambda path: path.stem)
def test_a_notebook_shows_what_its_cells_give_now(ledger, path):
    kept = nbformat.read(path, as_version=4)
    assert shown(kept) == shown(run(path, ledger)), "run them: python -m tests.notebook.outputs"


@pytest.mark.parametrize("path", PATHS, ids=lambda path: path.stem)
def test_a_notebook_is_kept_with_its_pictures_and_without_errors(path):
    outputs = [output for cell in nbformat.read(path, as_version=4).cells for output in cell.get("outputs", [])]
    assert [
        output for output in outputs if output.output_type not in {"execute_result", "display_data", "stream"}
    ] == []
    pictures = [output.data["image/png"] for output in outputs if "image/png" in output.get("data", {})]
    assert len(pictures) == PICTURES[path.stem]
    for picture in map(base64.b64decode, pictures):
        assert picture.startswith(b"\x89PNG")
        assert len(picture) > 10_000
