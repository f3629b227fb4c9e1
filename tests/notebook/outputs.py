"""Notebooks are kept with their outputs: `python -m tests.notebook.outputs` runs each anew and writes it.

They run in Jupyter, on the demo's ledger as the tests have it, without Spark.
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import nbformat
from nbclient import NotebookClient

from groupledger.cli.options import DEMO_LEDGER
from tests.docs.demo_ledger import unpack

NOTEBOOKS = Path(__file__).parents[2] / "notebooks"


def run(path, ledger):
    """The notebook with its outputs as they are now, without what differs from run to run."""
    notebook = nbformat.read(path, as_version=4)
    metadata = notebook.metadata
    resources = {"metadata": {"path": str(NOTEBOOKS)}}
    client = NotebookClient(notebook, timeout=300, kernel_name="python3", record_timing=False, resources=resources)
    client.execute(env=os.environ | {"GROUPLEDGER_LEDGER": str(ledger)})
    notebook.metadata = metadata | {"language_info": {"name": "python"}}
    for cell in notebook.cells:
        if cell.cell_type == "code":
            cell.outputs = [each for each in cell.outputs if each.get("name") != "stderr"]
    return nbformat.reads(nbformat.writes(notebook).replace(str(ledger), DEMO_LEDGER), as_version=4)


def shown(notebook):
    """What each cell says, and the kinds of its pictures: their bytes depend on the machine's libraries."""
    return [[_said(output) for output in cell.get("outputs", [])] for cell in notebook.cells]


def _said(output):
    data = output.get("data", {})
    pictures = sorted(kind for kind in data if kind.startswith("image/"))
    return output.output_type, output.get("text"), {kind: data[kind] for kind in data if kind not in pictures}, pictures


def main():
    """Write all of them."""
    with tempfile.TemporaryDirectory() as folder:
        ledger = unpack(Path(folder))
        for path in sorted(NOTEBOOKS.glob("*.ipynb")):
            nbformat.write(run(path, ledger), path)


if __name__ == "__main__":
    main()
