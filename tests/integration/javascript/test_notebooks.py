# SPDX-License-Identifier: Apache-2.0
"""The notebooks of these languages run from their first cell to their last, which checks the others."""

import json

import pytest
from driver_process import ROOT


@pytest.mark.parametrize(("language", "last", "file"), [("javascript", "'6 rows in queue.csv'", "queue.csv"), ("typescript", "'both hold'", None)])
def test_notebook(start, tmp_path, language, last, file):
    notebook = json.loads((ROOT / "notebooks" / f"{language}.ipynb").read_text())
    assert notebook["metadata"]["kernelspec"]["name"] == language
    driver = start(language, directory=tmp_path)
    results = [driver.run("".join(cell["source"])) for cell in notebook["cells"] if cell["cell_type"] == "code"]
    assert [result.done for result in results if not result.ok] == []
    shown = {mime for result in results for event in result.all("display") for mime in event["data"]}
    assert {"image/svg+xml", "text/html"} <= shown
    assert results[-1].value == last
    assert file is None or (tmp_path / file).exists()
