"""Which verbs the code writes into the audit trail, found by reading it."""

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import harvester

SOURCE = Path(harvester.__file__).parent
NAME = re.compile("[A-Z][A-Z0-9]*(_[A-Z0-9]+)+")
#: Function and the place of its argument that is the verb. Whoever hands one of its own arguments on joins them.
KNOWN = {("record", 1)}
Recorders = set[tuple[str, int]]


def recorded_verbs() -> set[str]:
    functions = list(_functions())
    recorders, before = set(KNOWN), set()
    while recorders != before:
        before = set(recorders)
        for function in functions:
            recorders |= _handing_on(function, recorders)
    return {verb for function in functions for verb in _verbs(function, recorders)}


@cache
def _modules() -> list[ast.Module]:
    return [ast.parse(file.read_text()) for file in SOURCE.rglob("*.py")]


def _functions() -> Iterator[ast.FunctionDef]:
    for module in _modules():
        yield from (node for node in ast.walk(module) if isinstance(node, ast.FunctionDef))


def _said(function: ast.FunctionDef, recorders: Recorders) -> Iterator[ast.expr]:
    """What stands for the verb in each call of a recorder."""
    for call in (node for node in ast.walk(function) if isinstance(node, ast.Call)):
        name = getattr(call.func, "attr", getattr(call.func, "id", None))
        yield from (call.args[place] for known, place in recorders if known == name and len(call.args) > place)


def _handing_on(function: ast.FunctionDef, recorders: Recorders) -> Recorders:
    own = [argument.arg for argument in function.args.args]
    names = {said.id for said in _said(function, recorders) if isinstance(said, ast.Name)}
    return {(function.name, own.index(name)) for name in names if name in own}


def _verbs(function: ast.FunctionDef, recorders: Recorders) -> Iterator[str]:
    for said in _said(function, recorders):
        values = _values(function, said)
        for constant in (node for value in values for node in ast.walk(value) if isinstance(node, ast.Constant)):
            if isinstance(constant.value, str) and NAME.fullmatch(constant.value):
                yield constant.value


def _values(function: ast.FunctionDef, said: ast.expr) -> list[ast.expr]:
    """Where a name, or a place in a table of the module, may come from."""
    if isinstance(said, ast.Name):
        return _assigned(function, said.id)
    if isinstance(said, ast.Subscript) and isinstance(said.value, ast.Name):
        return [value for module in _modules() for value in _assigned(module, said.value.id)]
    return [said]


def _assigned(place: ast.AST, name: str) -> list[ast.expr]:
    targets = (node for node in ast.walk(place) if isinstance(node, ast.Assign))
    return [node.value for node in targets if any(getattr(target, "id", None) == name for target in node.targets)]
