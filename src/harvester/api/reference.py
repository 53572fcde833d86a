"""The reference page `docs/api-reference.md`, made from the API's description of itself."""

from collections.abc import Iterable, Iterator
from typing import Any

from harvester.ops.scopes import Scope

_HEAD = """# API reference

Made from the description that the API serves at `/api/v1/openapi.json`; `make api-reference` makes this page anew.
[How to use it](how-to/use-the-api.md) tells the rest: keys, paging, errors, retries.

## Scopes

"""
#: Answers that every address may give; told once.
_EVERYWHERE = ("400", "401", "403", "411", "413", "422", "429", "500", "503")


def markdown(schema: dict[str, Any]) -> str:
    """The page."""
    scopes = _table(("scope", "allows to"), ((f"`{scope}`", scope.meaning) for scope in Scope))
    parts = [_HEAD + scopes, *_operations(schema), _everywhere(schema), *_shapes(schema)]
    return "\n\n".join(parts) + "\n"


def _operations(schema: dict[str, Any]) -> Iterator[str]:
    yield "## Addresses"
    for path, methods in schema["paths"].items():
        for method, operation in methods.items():
            yield "\n\n".join(_operation(path, method, operation))


def _operation(path: str, method: str, operation: dict[str, Any]) -> Iterator[str]:
    [[scope]] = operation["security"][0].values()
    yield f"### {operation['summary']}"
    yield f"`{method.upper()} {path}` with the scope `{scope}`"
    yield operation["description"]
    if operation["parameters"]:
        yield _table(("parameter", "in", "type", "meaning"), (_parameter(item) for item in operation["parameters"]))
    if "requestBody" in operation:
        yield f"Body: {_type(operation['requestBody']['content']['application/json']['schema'])}"
    answers = {status: told for status, told in operation["responses"].items() if status not in _EVERYWHERE}
    yield _table(("answer", "meaning"), (_answer(status, told) for status, told in answers.items()))


def _parameter(item: dict[str, Any]) -> tuple[str, str, str, str]:
    name = f"`{item['name']}`" + (" (required)" if item["required"] and item["in"] != "path" else "")
    schema = item["schema"]
    rules = [_type(schema), *(words.format(schema[key]) for key, words in _LIMITS.items() if key in schema)]
    if schema.get("default") not in (None, ""):
        rules.append(f"default {schema['default']}")
    return name, item["in"], ", ".join(rules), item.get("description", "")


_LIMITS = {"minimum": "from {}", "maximum": "to {}", "maxLength": "at most {} characters"}


def _answer(status: str, told: dict[str, Any]) -> tuple[str, str]:
    content = told.get("content", {}).get("application/json")
    return status, _type(content["schema"]) if content else told["description"]


def _everywhere(schema: dict[str, Any]) -> str:
    [operation, *_] = [item for methods in schema["paths"].values() for item in methods.values()]
    rows = ((status, operation["responses"][status]["description"]) for status in _EVERYWHERE)
    told = "Every address may also answer these; each is a [Problem](#problem)."
    return f"## Errors\n\n{told}\n\n{_table(('status', 'meaning'), rows)}"


def _shapes(schema: dict[str, Any]) -> Iterator[str]:
    yield "## Shapes"
    for name, shape in sorted(schema["components"]["schemas"].items()):
        if "enum" in shape:
            yield f"### {name}\n\n{', '.join(f'`{word}`' for word in shape['enum'])}"
        elif "properties" in shape:
            rows = [
                (f"`{field}`", _type(told), told.get("description", "")) for field, told in shape["properties"].items()
            ]
            yield f"### {name}\n\n{shape.get('description', '')}\n\n{_table(('field', 'type', 'meaning'), rows)}"


def _type(schema: dict[str, Any]) -> str:
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        return f"[{name}](#{name.lower()})"
    if "anyOf" in schema:
        return " or ".join(dict.fromkeys(_type(kind) for kind in schema["anyOf"]))
    if "enum" in schema:
        return " or ".join(f"`{word}`" for word in schema["enum"])
    if schema.get("type") == "array":
        return f"list of {_type(schema['items'])}"
    if schema.get("type") == "object" and isinstance(schema.get("additionalProperties"), dict):
        return f"object of {_type(schema['additionalProperties'])}"
    return str(schema.get("format") or schema.get("type") or "anything")


def _table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    titles = list(head)
    lines = [
        titles,
        ["---"] * len(titles),
        *([" ".join(cell.split()).replace("|", "\\|") for cell in row] for row in rows),
    ]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
