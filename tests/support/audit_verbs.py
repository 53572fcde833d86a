"""Which verbs the code writes into the audit log, found by reading it."""

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import harvester

SOURCE = Path(harvester.__file__).parent
NAME = re.compile("[A-Z][A-Z0-9]*(_[A-Z0-9]+)+")
#: Function and the place of its argument that is the verb; functions that pass on an argument of theirs join them.
KNOWN = {("record", 1)}
Recorders = set[tuple[str, int]]


@dataclass(frozen=True, slots=True)
class Said:
    """An argument of a call: a name, a place in a table of some module, or an expression with verbs in it."""

    name: str = ""
    table: str = ""
    verbs: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Function:
    name: str
    arguments: list[str]
    calls: list[tuple[str, list[Said]]]
    assigned: dict[str, set[str]]


def recorded_verbs() -> set[str]:
    functions, tables = _read()
    recorders, before = set(KNOWN), set()
    while recorders != before:
        before = set(recorders)
        for function in functions:
            recorders |= _handing_on(function, recorders)
    return {verb for function in functions for verb in _verbs(function, recorders, tables)}


def _read() -> tuple[list[Function], dict[str, set[str]]]:
    """Every function, and what is assigned to each name anywhere.

    Only what matters is kept of each module: the trees of all of them would be searched for garbage again and again.
    """
    functions, tables = [], {}
    for file in SOURCE.rglob("*.py"):
        nodes = list(ast.walk(ast.parse(file.read_text())))
        functions += [_function(node) for node in nodes if isinstance(node, ast.FunctionDef)]
        for name, verbs in _assigned(nodes).items():
            tables.setdefault(name, set()).update(verbs)
    return functions, tables


def _function(definition: ast.FunctionDef) -> Function:
    nodes = list(ast.walk(definition))
    calls = [(_called(node), [_said(value) for value in node.args]) for node in nodes if isinstance(node, ast.Call)]
    return Function(definition.name, [argument.arg for argument in definition.args.args], calls, _assigned(nodes))


def _called(call: ast.Call) -> str:
    return getattr(call.func, "attr", getattr(call.func, "id", ""))


def _said(value: ast.expr) -> Said:
    if isinstance(value, ast.Name):
        return Said(name=value.id)
    if isinstance(value, ast.Subscript) and isinstance(value.value, ast.Name):
        return Said(table=value.value.id)
    return Said(verbs=frozenset(_constants(value)))


def _assigned(nodes: list[ast.AST]) -> dict[str, set[str]]:
    """Name -> the verbs in every value that is assigned to it."""
    found: dict[str, set[str]] = {}
    for node in nodes:
        if isinstance(node, ast.Assign):
            for target in node.targets:
                if isinstance(target, ast.Name):
                    found.setdefault(target.id, set()).update(_constants(node.value))
    return found


def _constants(value: ast.expr) -> Iterator[str]:
    for node in ast.walk(value):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and NAME.fullmatch(node.value):
            yield node.value


def _recorded(function: Function, recorders: Recorders) -> Iterator[Said]:
    """What stands for the verb in each call of a recorder."""
    for name, arguments in function.calls:
        yield from (arguments[place] for known, place in recorders if known == name and len(arguments) > place)


def _handing_on(function: Function, recorders: Recorders) -> Recorders:
    own = function.arguments
    return {(function.name, own.index(said.name)) for said in _recorded(function, recorders) if said.name in own}


def _verbs(function: Function, recorders: Recorders, tables: dict[str, set[str]]) -> Iterator[str]:
    for said in _recorded(function, recorders):
        yield from said.verbs
        yield from function.assigned.get(said.name, ())
        yield from tables.get(said.table, ())
