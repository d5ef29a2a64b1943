# SPDX-License-Identifier: Apache-2.0
"""The document of the session API, as it stands in the tree."""

import json
from collections.abc import Iterator
from pathlib import Path

DOCUMENT = Path(__file__).parents[2] / "kernel-manager/api/openapi.json"


def read_document() -> dict:
    return json.loads(DOCUMENT.read_text(encoding="utf-8"))


def operations_of(document: dict) -> Iterator[tuple[str, str, dict]]:
    for path, item in document["paths"].items():
        for method, operation in item.items():
            if method != "parameters":
                yield path, method, operation
