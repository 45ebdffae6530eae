"""Executes a notebook, and refuses one that was committed with outputs."""

import pathlib
import sys
import time

import nbclient
import nbformat

path = pathlib.Path(sys.argv[1])
notebook = nbformat.read(path, as_version=4)
if any(cell.cell_type == "code" and (cell.outputs or cell.execution_count) for cell in notebook.cells):
    sys.exit(f"{path}: it is kept with outputs; clear them")
started = time.monotonic()
nbclient.NotebookClient(notebook, timeout=300, kernel_name="python3").execute(cwd=str(path.parent))
print(f"{path.name}: {time.monotonic() - started:.0f} s")
