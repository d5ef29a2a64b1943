# SPDX-License-Identifier: Apache-2.0
"""Writes report.md from an executed notebook and tells the newcomer what to look at next.

The notebook's last application/json output names its key figures. The address and token come from
the server's own state file, the session from the notebook's metadata.
"""

import argparse
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import nbformat


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
    """As the newcomer would type it, from where they stand."""
    relative = os.path.relpath(path)
    return relative if not relative.startswith("..") else str(path)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    for name in ("results", "state", "cellkeep", "console"):
        parser.add_argument(f"--{name}", type=Path, required=True)
    parser.add_argument("--serving", action="store_true", help="the server goes on serving")
    options = parser.parse_args()

    executed = options.results / "seattle-weather.ipynb"
    notebook = nbformat.read(executed, as_version=4)
    title, figures = key_figures(notebook)
    pictures = sorted((options.results / "figures").glob("*.png"), key=by_number)
    if len(pictures) < 2:
        sys.exit(f"error: the notebook drew {len(pictures)} pictures, expected at least 2")
    write_report(options.results / "report.md", title, figures, pictures)

    server = json.loads((options.state / "server.json").read_text(encoding="utf-8"))
    session = notebook.metadata["cellkeep"]["session_id"]
    url = server["url"].rstrip("/")
    file = connection_file(options.cellkeep, session, options.state)

    width = max(len(name) for name, _ in figures)
    print(f"\n{title}\n")
    for name, value in figures:
        print(f"  {name:<{width}}  {value}")
    print("\nWritten")
    for path in (options.results / "report.md", executed, *pictures):
        print(f"  {short(path)}")
    print("\nThe session still holds every variable. Ask it more:\n" if options.serving else
          "\nThe server ends now. `./scripts/run` without --once keeps it, to ask it more:\n")
    print(f"  curl -s {url}/v1/sessions/{session}/executions \\")
    print(f"    -H 'Authorization: Bearer {server['token']}' \\")
    print("    -H 'Content-Type: application/json' \\")
    print('    -d \'{"code": "years.round(1)"}\'\n')
    print(f"  {short(options.console)} --existing {short(Path(file))}", flush=True)


if __name__ == "__main__":
    main()
