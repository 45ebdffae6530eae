"""Where the command line is, whose documents ours must equal."""

from __future__ import annotations

import json
import os
import pathlib
import subprocess
from typing import Any, Callable

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]


def find_command() -> pathlib.Path | None:
    target = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
    places = [os.environ.get("UPTACK_COMMAND"), target / "release/uptack", target / "debug/uptack"]
    return next((pathlib.Path(place) for place in places if place and pathlib.Path(place).exists()), None)


@pytest.fixture(scope="session")
def command() -> Callable[..., Any]:
    """Runs the command line and gives the document that it prints."""
    path = find_command()
    if path is None:
        if os.environ.get("CI"):
            pytest.fail("there is no command line to compare with")
        pytest.skip("there is no command line to compare with: cargo build --release")

    def run(*arguments: str, text: str = "") -> Any:
        words = [str(path), *map(str, arguments), "--json"]
        done = subprocess.run(words, input=text, capture_output=True, text=True, check=False, cwd=ROOT)
        assert done.stdout, done.stderr
        return json.loads(done.stdout)

    return run
