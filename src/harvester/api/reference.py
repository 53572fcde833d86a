"""The reference, made from the API's description of itself: `docs/api-reference.md`, and a page of the API."""

import re
from collections.abc import Iterable, Iterator
from html import escape
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
    """The page of the documentation."""
    return _HEAD + _reference(schema) + "\n"


_PAGE_HEAD = """# API reference

Every request needs an API key, sent as `Authorization: Bearer hvk_...`. For tools the same is at
[openapi.json](/api/v1/openapi.json).

"""
_PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Harvester API reference</title>
<link rel="stylesheet" href="/api/v1/docs.css">
</head>
<body>
<nav aria-label="Contents"><ul>
{contents}
</ul></nav>
<main>
{content}
</main>
</body>
</html>
"""


def page(schema: dict[str, Any]) -> str:
    """The same as a page of HTML that needs nothing from elsewhere."""
    blocks = (_PAGE_HEAD + "## Scopes\n\n" + _reference(schema)).split("\n\n")
    titles = [block.partition(" ")[2] for block in blocks if block.startswith(("## ", "### "))]
    contents = "\n".join(f'<li><a href="#{_anchor(title)}">{escape(title)}</a></li>' for title in titles)
    return _PAGE.format(contents=contents, content="\n".join(_block(block) for block in blocks if block))


def _block(text: str) -> str:
    """One block of the Markdown that this module writes, and of no other."""
    if text.startswith("#"):
        marks, _, title = text.partition(" ")
        return f'<h{len(marks)} id="{_anchor(title)}">{escape(title)}</h{len(marks)}>'
    if text.startswith("| "):
        lines = [re.split(r"(?<!\\) \| ", line[2:-2]) for line in text.splitlines()]
        head = "".join(f'<th scope="col">{_inline(cell)}</th>' for cell in lines[0])
        rows = "\n".join("<tr>" + "".join(f"<td>{_inline(cell)}</td>" for cell in line) + "</tr>" for line in lines[2:])
        return f'<div class="table"><table>\n<thead><tr>{head}</tr></thead>\n<tbody>\n{rows}\n</tbody></table></div>'
    return f"<p>{_inline(text)}</p>"


def _inline(text: str) -> str:
    written = escape(text.replace("\\|", "|"))
    written = re.sub(r"`([^`]*)`", r"<code>\1</code>", written)
    return re.sub(r"\[([^\]]*)\]\(((?:#|/)[^)]*)\)", r'<a href="\2">\1</a>', written)


def _anchor(title: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", title.lower()).strip("-")


def _reference(schema: dict[str, Any]) -> str:
    scopes = _table(("scope", "allows to"), ((f"`{scope}`", scope.meaning) for scope in Scope))
    return "\n\n".join([scopes, *_operations(schema), _everywhere(schema), *_shapes(schema)])


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
