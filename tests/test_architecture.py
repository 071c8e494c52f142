"""Every import points down, the core opens nothing, and files and functions keep the house's measure."""

import ast
import re
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parent.parent / "src" / "kvguard"
RANKS = {
    "units": 0,
    "slotted": -1,
    "errors": 0,
    "version": 0,
    "events": 1,
    "lines": 2,
    "kvcache": 2,
    "startup": 3,
    "slo": 4,
    "guard": 5,
    "trace": 6,
    "sources": 6,
    "render": 7,
    "serve": 8,
    "cli": 9,
    "__main__": 10,
}
"""Where a module or package stands; it imports only what stands lower, or itself."""
OUTSIDE_OF_THE_CORE = {
    "asyncio",
    "datetime",
    "fastapi",
    "httpx",
    "logging",
    "multiprocessing",
    "os",
    "pathlib",
    "prometheus_client",
    "random",
    "select",
    "selectors",
    "shutil",
    "signal",
    "socket",
    "subprocess",
    "tempfile",
    "threading",
    "time",
    "urllib",
    "uvicorn",
}
"""What ranks 0 to 5 never import: files, sockets, processes, clocks, threads, logging, the web stack."""
READS_FILES_FOR_THE_CALLER = {"slo/file.py"}
"""The one module of the core that is imported only to read a file's text."""
MAX_FILE, MAX_FUNCTION = 400, 40

MODULES = sorted(PACKAGE.rglob("*.py"))


def place(path: Path) -> str:
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def imports(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: a relative import hides where it points"
            module = node.module or ""
            yield from (f"{module}.{alias.name}" for alias in node.names) if module == "kvguard" else (module,)


def relative(path: Path) -> str:
    return str(path.relative_to(PACKAGE))


@pytest.mark.parametrize("path", MODULES, ids=relative)
def test_imports_point_down(path: Path) -> None:
    if path.parent == PACKAGE and path.name == "__init__.py":
        return  # the public names
    own = place(path)
    upward = {
        name
        for name in imports(path)
        if name.startswith("kvguard.")
        for other in [name.split(".")[1]]
        if other != own and other in RANKS and RANKS[other] >= RANKS[own]
    }

    assert own in RANKS
    assert upward == set()


@pytest.mark.parametrize("path", [path for path in MODULES if RANKS.get(place(path), 10) <= 5], ids=relative)
def test_the_core_opens_nothing_and_asks_no_clock(path: Path) -> None:
    if relative(path) in READS_FILES_FOR_THE_CALLER:
        return
    outside = {name.split(".")[0] for name in imports(path)} & OUTSIDE_OF_THE_CORE
    calls = {
        node.func.id
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ("open", "print", "input")
    }

    assert (outside, calls) == (set(), set())


@pytest.mark.parametrize("path", MODULES, ids=relative)
def test_files_and_functions_keep_their_measure(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    long = {
        node.name: node.end_lineno - node.lineno + 1
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and node.end_lineno is not None
        and node.end_lineno - node.lineno + 1 > MAX_FUNCTION
    }

    assert long == {}
    assert text.count("\n") <= MAX_FILE


@pytest.mark.parametrize("path", MODULES, ids=relative)
def test_every_module_says_what_it_is_for(path: Path) -> None:
    assert ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))), f"{path} has no first sentence"


def test_only_known_packages_are_imported() -> None:
    project = tomllib.loads((PACKAGE.parents[1] / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    required = [*project["dependencies"], *project["optional-dependencies"]["fast"]]
    declared = {re.split(r"[^\w-]", name)[0].replace("-", "_") for name in required}
    imported_as = {"pyyaml": "yaml"}
    part_of_them = {"starlette", "pydantic_core"}
    compression = {"compression"}  # the standard library's, from 3.14
    used = {name.split(".")[0] for path in MODULES for name in imports(path)}

    assert used - set(sys.stdlib_module_names) - {"kvguard"} - compression == (
        {imported_as.get(name, name) for name in declared} | part_of_them
    )
