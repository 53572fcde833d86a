"""The API reference, generated from the OpenAPI description: `docs/api-reference.md`, and a page of the API."""

import re
from collections.abc import Iterable, Iterator
from html import escape
from typing import Any

from harvester.ops.scopes import Scope

_MARKDOWN_HEAD = """# API reference

Generated from the description that the API serves at `/api/v1/openapi.json`; run `make api-reference` to update it.
[How to use the API](how-to/use-the-api.md) explains keys, paging, errors and retries.

"""
_PAGE_HEAD = """# API reference

Every request needs an API key, sent as `Authorization: Bearer hvk_...`. For tools there is
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
#: Responses that every address may return; listed once.
_COMMON = ("400", "401", "403", "411", "413", "422", "429", "500", "503")
_LIMITS = {"minimum": "from {}", "maximum": "to {}", "maxLength": "at most {} characters"}


def markdown(schema: dict[str, Any]) -> str:
    """Return the reference as Markdown, for the documentation."""
    return _MARKDOWN_HEAD + _reference(schema) + "\n"


def page(schema: dict[str, Any]) -> str:
    """Return the reference as an HTML page that loads nothing from other servers."""
    blocks = (_PAGE_HEAD + _reference(schema)).split("\n\n")
    titles = [block.partition(" ")[2] for block in blocks if block.startswith(("## ", "### "))]
    contents = "\n".join(f'<li><a href="#{_anchor(title)}">{escape(title)}</a></li>' for title in titles)
    return _PAGE.format(contents=contents, content="\n".join(_block(block) for block in blocks if block))


def _block(text: str) -> str:
    """Convert one block of the Markdown that this module writes; other Markdown is not supported."""
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
    html = escape(text.replace("\\|", "|"))
    html = re.sub(r"`([^`]*)`", r"<code>\1</code>", html)
    return re.sub(r"\[([^\]]*)\]\(((?:#|/)[^)]*)\)", r'<a href="\2">\1</a>', html)


def _anchor(title: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", title.lower()).strip("-")


def _reference(schema: dict[str, Any]) -> str:
    operations = [
        (path, method, operation) for path, methods in schema["paths"].items() for method, operation in methods.items()
    ]
    common = operations[0][2]["responses"]
    blocks = ["## Scopes", _table(("scope", "allows to"), ((f"`{scope}`", scope.meaning) for scope in Scope))]
    blocks.append("## Addresses")
    for path, method, operation in operations:
        blocks += _operation(path, method, operation)
    blocks += ["## Errors", "Every address may return these; each is a [Problem](#problem)."]
    blocks.append(_table(("status", "meaning"), ((status, common[status]["description"]) for status in _COMMON)))
    blocks.append("## Shapes")
    for name, shape in sorted(schema["components"]["schemas"].items()):
        if "enum" in shape:
            blocks += [f"### {name}", ", ".join(f"`{value}`" for value in shape["enum"])]
        elif "properties" in shape:
            rows = [
                (f"`{key}`", _type(field), field.get("description", "")) for key, field in shape["properties"].items()
            ]
            blocks += [f"### {name}", shape.get("description", ""), _table(("field", "type", "meaning"), rows)]
    return "\n\n".join(blocks)


def _operation(path: str, method: str, operation: dict[str, Any]) -> Iterator[str]:
    [[scope]] = operation["security"][0].values()
    yield f"### {operation['summary']}"
    yield f"`{method.upper()} {path}` with the scope `{scope}`"
    yield operation["description"]
    if operation["parameters"]:
        yield _table(("parameter", "in", "type", "meaning"), (_parameter(item) for item in operation["parameters"]))
    if "requestBody" in operation:
        yield f"Body: {_type(operation['requestBody']['content']['application/json']['schema'])}"
    rows = []
    for status, response in operation["responses"].items():
        if status not in _COMMON:
            content = response.get("content", {}).get("application/json")
            rows.append((status, _type(content["schema"]) if content else response["description"]))
    yield _table(("status", "response"), rows)


def _parameter(item: dict[str, Any]) -> tuple[str, str, str, str]:
    name = f"`{item['name']}`" + (" (required)" if item["required"] and item["in"] != "path" else "")
    schema = item["schema"]
    rules = [_type(schema), *(text.format(schema[key]) for key, text in _LIMITS.items() if key in schema)]
    if schema.get("default") not in (None, ""):
        rules.append(f"default {schema['default']}")
    return name, item["in"], ", ".join(rules), item.get("description", "")


def _type(schema: dict[str, Any]) -> str:
    # A shape that has a default or a description of its own here.
    [schema] = schema.get("allOf", [schema])
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        return f"[{name}](#{name.lower()})"
    if "anyOf" in schema:
        return " or ".join(dict.fromkeys(_type(kind) for kind in schema["anyOf"]))
    if "enum" in schema:
        return " or ".join(f"`{value}`" for value in schema["enum"])
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
