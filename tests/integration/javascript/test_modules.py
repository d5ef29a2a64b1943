# SPDX-License-Identifier: Apache-2.0
"""import and require: builtins, the workspace's files and packages, the environment's packages."""

import json

import pytest


def package(folder, name, files, **about):
    place = folder / "node_modules" / name
    place.mkdir(parents=True)
    (place / "package.json").write_text(json.dumps({"name": name, "version": "1.0.0", **about}))
    for file, text in files.items():
        (place / file).write_text(text)


@pytest.mark.parametrize(
    ("code", "value"),
    [
        ("import fs from 'node:fs'; typeof fs.readFileSync", "'function'"),
        ("import * as path from 'path'; path.sep", "'/'"),
        ("import {join as j, sep} from 'node:path'; j('a', sep)", "'a/'"),
        ("import d, {sep as s} from 'node:path'; d.sep === s", "true"),
        ("import 'node:path'; 1", "1"),
        ("import {default as e} from 'node:events'; typeof e", "'function'"),
        ("import {'sep' as z} from 'node:path'; z", "'/'"),
        ("(await import('node:os')).EOL", "'\\n'"),
        ("function late() { return import('node:os') }\n(await late()).EOL", "'\\n'"),
        ("require('fs') === require('node:fs')", "true"),
        ("require('acorn').version === (await import('acorn')).version", "true"),
        ("typeof require.resolve('acorn')", "'string'"),
        ("const f = sepLater(); import {sep as s2} from 'path'; function sepLater() { return s2 }\nf", "'/'"),
        ("import.meta.dirname === process.cwd() && import.meta.url.startsWith('file:///')", "true"),
        ("__dirname === process.cwd() && __filename.startsWith(__dirname)", "true"),
    ],
)
def test_what_is_always_there(shared, code, value):
    assert shared.value(code) == value


def test_files_of_the_working_directory(js, tmp_path):
    (tmp_path / "c.js").write_text("exports.kind = 'cjs'")
    (tmp_path / "e.mjs").write_text("export default 'esm'; export const x = 1; export let n = 0; export const up = () => ++n")
    (tmp_path / "d.json").write_text('{"a": [1]}')
    assert js.value("import e, {x} from './e.mjs'; [e, x]") == "[ 'esm', 1 ]"
    assert js.value("require('./c').kind + (await import('./c.js')).kind") == "'cjscjs'"
    assert js.value("require('./d.json').a") == "[ 1 ]"
    assert js.value("import * as e2 from './e.mjs'; e2.up(); e2.n") == "1"
    assert js.value(f"(await import({json.dumps(str(tmp_path / 'e.mjs'))})).x") == "1"


def test_packages_of_the_working_directory(js, tmp_path):
    package(tmp_path, "only-esm", {"index.js": "export const a = 'esm only'"}, type="module", exports="./index.js")
    package(tmp_path, "only-import", {"i.mjs": "export default import.meta.url"}, exports={"import": "./i.mjs"})
    package(tmp_path, "old", {"index.js": "module.exports = {b: require('acorn').version}"})
    package(tmp_path, "acorn", {"index.js": "exports.version = 'mine'"})
    assert js.value("import {a} from 'only-esm'; a") == "'esm only'"
    assert js.value("import url from 'only-import'; url.endsWith('only-import/i.mjs')") == "true"
    assert js.value("[require('old').b, require('acorn').version]") == "[ 'mine', 'mine' ]"


def test_common_packages_see_those_of_the_environment(js, tmp_path):
    package(tmp_path, "old", {"index.js": "module.exports = typeof require('acorn').parse"})
    assert js.value("require('old')") == "'function'"


def test_another_directory(js, tmp_path):
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "m.js").write_text("module.exports = 'sub'")
    assert js.fails("require('./m.js')")["kind"] == "import"
    assert js.value("process.chdir('sub'); require('./m.js')") == "'sub'"
    assert js.value("import m from './m.js'; m") == "'sub'"


@pytest.mark.parametrize(
    "code",
    ["import {a} from 'broken'", "await import('broken')", "require('broken')", "import x from './syntax.mjs'", "require('./syntax.js')",
     "import {nope} from './fine.mjs'", "import './folder'", "require('')", "import('')", "await import(5)", "require(5)",
     "import x from 'https://example.org/x.js'", "import x from './data.json'"],
)  # fmt: skip
def test_what_cannot_be_imported(js, tmp_path, code):
    package(tmp_path, "broken", {"index.js": "throw new Error('broken inside')"})
    (tmp_path / "syntax.mjs").write_text("let = = 1")
    (tmp_path / "syntax.js").write_text("let = = 1")
    (tmp_path / "fine.mjs").write_text("export const a = 1")
    (tmp_path / "folder").mkdir()
    (tmp_path / "data.json").write_text("{}")
    assert js.fails(code)["message"]
    assert js.value("1") == "1"
