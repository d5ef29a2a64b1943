# SPDX-License-Identifier: Apache-2.0
"""Writes report.md from an executed notebook, or tells how to go on with the session that ran it.

The notebook's last application/json output names its key figures. With --state, the address and token
come from the server's own state file, the session from the notebook's metadata.
"""

import argparse
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import nbformat

NOTEBOOK = "seattle-weather.ipynb"


def key_figures(notebook: nbformat.NotebookNode) -> tuple[str, list[list[str]]]:
    """The title and key figures that the notebook's last JSON output holds."""
    for cell in reversed(notebook.cells):
        for output in reversed(cell.get("outputs", [])):
            found = output.get("data", {}).get("application/json")
            if isinstance(found, dict) and "key_figures" in found:
                return found["title"], found["key_figures"]
    sys.exit("error: the executed notebook holds no key figures")


def write_report(path: Path, title: str, figures: list[list[str]], pictures: list[Path]) -> None:
    lines = [f"# {title}", "", "| | |", "|---|---|"]
    lines += [f"| {name} | {value} |" for name, value in figures]
    lines += [
        "",
        "Computed in a sandboxed Cellkeep session; the cells and all their outputs are in",
    ]
    lines += ["[seattle-weather.ipynb](seattle-weather.ipynb).", ""]
    for picture in pictures:
        lines += [f"![{picture.stem}]({picture.relative_to(path.parent)})", ""]
    path.write_text("\n".join(lines), encoding="utf-8")


def connection_file(cellkeep: Path, session: str, state: Path) -> str:
    """Where the session's Jupyter connection file is, as `cellkeep connect` says."""
    answer = subprocess.run(
        [cellkeep, "connect", session, "--state-dir", state],
        check=True,
        text=True,
        capture_output=True,
        timeout=30,
    )
    found = re.search(r"^connection file: (.+)$", answer.stdout, re.MULTILINE)
    return found.group(1) if found else sys.exit(f"error: connect says {answer.stdout!r}")


def by_number(picture: Path) -> list[int]:
    """cell-9-1.png before cell-10-1.png."""
    return [int(number) for number in re.findall(r"\d+", picture.stem)]


def short(path: Path) -> str:
    """The path as the user would type it in the present folder."""
    relative = os.path.relpath(path)
    return relative if not relative.startswith("..") else str(path)


def write_results(results: Path) -> None:
    """The report of what the notebook found, on disk and on the terminal."""
    executed = results / NOTEBOOK
    title, figures = key_figures(nbformat.read(executed, as_version=4))
    pictures = sorted((results / "figures").glob("*.png"), key=by_number)
    if len(pictures) < 2:
        sys.exit(f"error: the notebook drew {len(pictures)} pictures, expected at least 2")
    write_report(results / "report.md", title, figures, pictures)
    width = max(len(name) for name, _ in figures)
    print(f"\n{title}\n")
    for name, value in figures:
        print(f"  {name:<{width}}  {value}")
    print("\nWritten")
    for path in (results / "report.md", executed, *pictures):
        print(f"  {short(path)}")
    print(flush=True)


def show_session(results: Path, state: Path, cellkeep: Path, console: Path) -> None:
    """How to go on with the session that a server keeps."""
    server = json.loads((state / "server.json").read_text(encoding="utf-8"))
    session = nbformat.read(results / NOTEBOOK, as_version=4).metadata["cellkeep"]["session_id"]
    file = connection_file(cellkeep, session, state)
    print("\nThe session still holds every variable. Ask it more:\n")
    print(f"  curl -s {server['url'].rstrip('/')}/v1/sessions/{session}/executions \\")
    print(f"    -H 'Authorization: Bearer {server['token']}' \\")
    print("    -H 'Content-Type: application/json' \\")
    print('    -d \'{"code": "years.round(1)"}\'\n')
    print(f"  {short(console)} --existing {short(Path(file))}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--results", type=Path, required=True)
    parser.add_argument("--state", type=Path, help="of the server that keeps the session")
    parser.add_argument("--cellkeep", type=Path, help="with --state")
    parser.add_argument("--console", type=Path, help="with --state")
    options = parser.parse_args()
    if options.state is None:
        write_results(options.results)
    else:
        show_session(options.results, options.state, options.cellkeep, options.console)


if __name__ == "__main__":
    main()
