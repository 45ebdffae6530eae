"""Every parameter of every public function and method is documented."""

from __future__ import annotations

import inspect
import re
from typing import Any, Iterator

import pytest
import uptack as up


def documented() -> Iterator[tuple[str, Any]]:
    for name in up.__all__:
        thing = getattr(up, name)
        if inspect.isfunction(thing):
            yield name, thing
        elif inspect.isclass(thing):
            for method, function in inspect.getmembers(thing, lambda member: inspect.isfunction(member) or inspect.ismethod(member)):
                public = not method.startswith("_") or (thing is up.Channel and method == "__init__")
                if public and function.__module__.startswith("uptack"):
                    yield f"{name}.{method}", function


@pytest.mark.parametrize(("name", "function"), list(documented()), ids=lambda value: value if isinstance(value, str) else "")
def test_every_parameter_is_documented(name: str, function: Any) -> None:
    text = inspect.getdoc(function) or ""
    assert text, f"{name} has no documentation"
    parameters = [parameter for parameter in inspect.signature(function).parameters if parameter not in ("self", "cls")]
    missing = [parameter for parameter in parameters if not re.search(rf"``{parameter}``", text)]
    assert not missing, f"{name} does not document {missing}"


def test_nothing_is_documented_that_does_not_exist() -> None:
    for name, function in documented():
        listed = re.findall(r"^- ((?:``\w+``(?:, )?)+):", inspect.getdoc(function) or "", re.MULTILINE)
        named = [word for words in listed for word in re.findall(r"``(\w+)``", words)]
        parameters = set(inspect.signature(function).parameters)
        assert set(named) <= parameters, (name, named)
        assert len(named) == len(set(named)), name
