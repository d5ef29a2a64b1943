# SPDX-License-Identifier: Apache-2.0
"""An asynchronous program for E2B with several contexts, languages, and results as they come."""

import asyncio

from e2b_code_interpreter import AsyncSandbox


async def main() -> None:
    sandbox = await AsyncSandbox.create(envs={"MODE": "test"})
    try:
        await sandbox.files.make_dir("/home/user/project")
        context = await sandbox.create_code_context(cwd="/home/user/project", language="python")
        print("context", context.language, context.cwd)
        await sandbox.run_code("a = 'of the default context'")
        await sandbox.run_code("a = 'of the new context'", context=context)
        print("default", (await sandbox.run_code("a")).text)
        print("new", (await sandbox.run_code("a", context=context)).text)
        await sandbox.restart_code_context(context)
        print("restarted", (await sandbox.run_code("a", context=context)).error.name)

        known = [one.id for one in await sandbox.list_code_contexts()]
        print("listed", context.id in known)
        await sandbox.remove_code_context(context)
        known = [one.id for one in await sandbox.list_code_contexts()]
        print("listed", context.id in known)

        print("js", (await sandbox.run_code("const n = [1, 2, 3]; n.map((x) => x * 2).join()", language="js")).text)
        print("bash", (await sandbox.run_code("echo $MODE", language="bash")).logs.stdout)
        print("envs", (await sandbox.run_code("import os; os.environ['KEY']", envs={"KEY": "value"})).text)

        out, err, shown, errors = [], [], [], []
        await sandbox.run_code(
            "import sys\n"
            "from IPython.display import display, Markdown\n"
            "for n in range(3):\n"
            "    print('step', n)\n"
            "    display(Markdown(f'*{n}*'))\n"
            "print('careful', file=sys.stderr)\n"
            "1 / 0",
            on_stdout=lambda message: out.append(message.line),
            on_stderr=lambda message: err.append(message.line),
            on_result=lambda result: shown.append(result.markdown),
            on_error=lambda error: errors.append(error.name),
        )
        print("out", "".join(out).split("\n"))
        print("err", "".join(err).strip())
        print("shown", shown)
        print("errors", errors)

        slow, fast = await asyncio.gather(
            sandbox.run_code("import time; time.sleep(1); 'slow'"),
            sandbox.commands.run("echo fast"),
        )
        print("together", slow.text, fast.stdout.strip())
    finally:
        print("killed", await sandbox.kill())


asyncio.run(main())
