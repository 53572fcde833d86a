"""`python tools/architecture_figures.py`: measure the shape of the code, to compare versions.

Run it in the root of the project with the project's environment. Definitions:

- **one-caller helper**: a function whose name begins with one underscore and occurs twice in its module: its definition
  and one use. The share is of all functions.
- **one-importer module**: a module that exactly one other module of the package imports.
- **files one row passes**: modules of which at least one function runs while a worker fetches a catalog of one row from
  an SFTP server, parses, judges and promotes it, and the API then finds it in a search. Modules that only define names
  are not counted.
- **files that name a setting, a gate**: modules that contain the name of the newest plain setting of a feed
  (`kept_parameters`) and of the newest gate (`repeats_ignored`), in any case.
- **lines**: of Python files, blank lines and comments included; migrations and their SQL are not counted anywhere.
"""

import ast
import logging
import os
import re
import subprocess
import sys
import tempfile
import threading
from collections import Counter
from pathlib import Path
from types import FrameType

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "harvester"
#: Counted separately: they are first versions of later capabilities.
SLICES = ("scraping", "evidence")
ONCE_DEFINED_ONCE_USED = 2
SETTING, GATE = "kept_parameters", "repeats_ignored"


def main() -> None:
    if "--row" in sys.argv:
        count_files_of_a_row()
        return
    modules = {path: path.read_text() for path in sorted(SOURCE.rglob("*.py")) if "migrations" not in path.parts}
    functions, helpers, importers = 0, 0, Counter()
    for text in modules.values():
        imported: set[str] = set()
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                functions += 1
                is_private = node.name.startswith("_") and not node.name.startswith("__")
                helpers += is_private and len(re.findall(rf"\b{node.name}\b", text)) == ONCE_DEFINED_ONCE_USED
            elif isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("harvester"):
                imported |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
        importers.update(imported)
    names = [".".join(path.relative_to(ROOT / "src").with_suffix("").parts) for path in modules]
    single = sum(importers[name] == 1 for name in names if not name.endswith("__init__"))
    lines = {path: text.count("\n") for path, text in modules.items()}
    slices = sum(count for path, count in lines.items() if path.relative_to(SOURCE).parts[0] in SLICES)
    print(f"one-caller helpers: {helpers} of {functions} functions, {helpers / functions:.1%}")
    print(f"one-importer modules: {single} of {len(modules)}, {single / len(modules):.1%}")
    for what, name in (("a setting", SETTING), ("a gate", GATE)):
        print(f"files that name {what} ({name}): {sum(name in text.lower() for text in modules.values())}")
    print(f"lines of src: {sum(lines.values()) - slices:,}, and {slices:,} of {' and '.join(SLICES)}", flush=True)
    # In a separate process, which sets up Django and a database server, and whose log is not printed.
    row = subprocess.run([sys.executable, __file__, "--row"], capture_output=True, text=True, cwd=ROOT, check=False)
    print(row.stdout.splitlines()[-1] if row.returncode == 0 else row.stderr)


def count_files_of_a_row() -> None:
    home = Path(tempfile.mkdtemp(prefix="harvester-figures-"))
    home.chmod(0o755)
    sys.path.insert(0, str(ROOT))
    os.environ |= {"HARVESTER_HOME": str(home), "DJANGO_SETTINGS_MODULE": "harvester.settings"}
    os.environ |= {"HARVESTER_EGRESS_ALLOW": "127.0.0.0/8", "HARVESTER_LOG_LEVEL": "error"}
    import django

    django.setup()
    logging.disable()
    from django.test.utils import setup_test_environment
    from tests.support.api import Application
    from tests.support.feed_world import World
    from tests.support.own_cluster import migrated_cluster
    from tests.support.sftp_server import SftpServer
    from tests.support.workers import run_until_idle

    from harvester.ops.scopes import Scope

    setup_test_environment()

    ran: set[str] = set()

    def note(frame: FrameType, event: str, _: object) -> None:
        if event == "call" and frame.f_code.co_name != "<module>":
            ran.add(frame.f_code.co_filename)

    with migrated_cluster() as cluster, cluster.in_use(), SftpServer(Path(tempfile.mkdtemp())) as server:
        world = World(server)
        world.put(1)
        application = Application(Scope.OFFERS_READ)
        threading.setprofile(note)
        sys.setprofile(note)
        world.ask()
        run_until_idle()
        found = application.read("/offers")
        sys.setprofile(None)
        threading.setprofile(None)  # type: ignore[arg-type]
    if len(found["items"]) != 1:
        sys.exit(f"the search did not find the row: {found}")
    files = {Path(name) for name in ran if name.startswith(str(SOURCE))}
    print(f"files one row passes: {len(files)}")


if __name__ == "__main__":
    main()
