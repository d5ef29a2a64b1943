# SPDX-License-Identifier: Apache-2.0
"""The TypeScript client: its types are the document's, it compiles strictly, packs, and what was packed
passes its tests against the real server."""

import shutil
from pathlib import Path

import pytest
from harness import LEAN, TOKEN, Server
from typescript_package import MODULES, ROOT, SOURCE, packed, run, tree

__all__ = ["packed", "tree"]  # fixtures
CONSUMER = """
import { Process, Session, type Result, type wire } from 'cellkeep';
export async function use(session: Session): Promise<string> {
    const result: Result = await session.run('1', { timeout_ms: 1000, on_disconnect: 'interrupt' });
    const status: wire.Execution['status'] = result.status;
    for await (const event of session.stream('2')) {
        if (event.type === 'stdout') { return status + event.text; }
    }
    // @ts-expect-error: no such option
    await session.run('1', { timeout: 1 });
    const process: Process = await session.startProcess(['cat'], { stdin: 'open', tty: { rows: 24, cols: 80 } });
    const code: number | null | undefined = (await process.wait()).info.end?.exit_code;
    // @ts-expect-error: no such value
    await session.startProcess(`exit ${code}`, { stdin: true });
    const inputs: string[] = (await session.files()).filter((one) => one.read_only === true).map((one) => one.path);
    return result.text + inputs.join();
}
"""


def test_the_types_are_those_of_the_document(tree: Path) -> None:
    made = tree / "schema.ts"
    document = ROOT / "kernel-manager/api/openapi.json"
    generator = MODULES / "openapi-typescript/bin/cli.js"
    options = ("--default-non-nullable", "false", "--root-types", "--root-types-no-schema-prefix")
    run("node", generator, document, "--output", made, *options, cwd=tree)
    same = made.read_text(encoding="utf-8") == (tree / "src/schema.ts").read_text(encoding="utf-8")
    assert same, "src/schema.ts is not what openapi.json gives: npm run generate"


def test_what_is_packed_is_the_code_its_types_and_nothing_else(packed: Path) -> None:
    files = {path.name for path in (packed / "node_modules/cellkeep").iterdir()}
    assert files == {"dist", "src", "package.json", "README.md"}


def test_a_strict_caller_gets_the_types(packed: Path) -> None:
    (packed / "caller.ts").write_text(CONSUMER, encoding="utf-8")
    compiler = MODULES / "typescript/bin/tsc"
    # The package's declarations are checked with it; TypeScript's own need no check.
    options = "--strict --noEmit --skipDefaultLibCheck --target es2022 --module nodenext --lib es2022,dom,dom.asynciterable"
    run("node", compiler, *options.split(), "caller.ts", cwd=packed)


def test_the_packed_client_does_what_it_says(
    packed: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    shutil.copytree(SOURCE / "test", packed / "test", dirs_exist_ok=True)
    inputs = tmp_path_factory.mktemp("inputs")
    (inputs / "big.csv").write_text("a,b\n1,2\n", encoding="utf-8")
    with Server(*LEAN, "--log-format", "text", "--inputs", str(inputs)) as server:
        run(
            "node", "--test", "test/", cwd=packed, CELLKEEP_URL=server.url, CELLKEEP_TOKEN=TOKEN
        )


def test_the_example_of_the_readme_is_true(packed: Path) -> None:
    """As it stands there, but for the address and the token; under the strict compiler, too."""
    text = (SOURCE / "README.md").read_text(encoding="utf-8")
    (example,) = (part.partition("```")[0] for part in text.split("```ts\n")[1:])
    options = "--strict --skipLibCheck --target es2022 --module nodenext --lib es2022,dom,dom.asynciterable --types node"
    with Server(*LEAN, "--log-format", "text") as server:
        for written, ours in (("http://127.0.0.1:8888", server.url), ("secret", TOKEN)):
            assert example.count(f"'{written}'") == 1
            example = example.replace(f"'{written}'", f"'{ours}'")
        (packed / "readme.ts").write_text(example, encoding="utf-8")
        types = ("--typeRoots", MODULES / "@types")
        run("node", MODULES / "typescript/bin/tsc", *options.split(), *types, "readme.ts", cwd=packed)
        assert run("node", "readme.js", cwd=packed) == "ok 16\n"
        assert (packed / "p.png").read_bytes().startswith(b"\x89PNG")
        assert server.get("/v1/sessions").json()["sessions"] == []
