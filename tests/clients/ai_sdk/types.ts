// SPDX-License-Identifier: Apache-2.0
//
// The compiler's part of the test: what the adapter offers is what the AI SDK's types ask for.
import { generateText, type Experimental_SandboxSession, type LanguageModel, type ToolSet } from 'ai';
import { CellkeepSandbox, endWhenBroken, sandboxTools, type SandboxTools } from 'cellkeep/ai-sdk';

export async function use(model: LanguageModel): Promise<string> {
    const sandbox = await CellkeepSandbox.create({ limits: { memory_mb: 512 }, cwd: 'src', patience_ms: 0 });
    const asked: Experimental_SandboxSession = sandbox;
    const tools: SandboxTools = sandboxTools(sandbox);
    const set: ToolSet = tools;
    const done = await generateText({
        model,
        tools,
        prompt: asked.description,
        experimental_sandbox: sandbox,
        stopWhen: [endWhenBroken],
    });
    for (const result of done.toolResults) {
        if (result.toolName === 'run_command' && !result.dynamic) {
            const code: number = result.output.exit_code;
            // @ts-expect-error: the output has no such member
            const wrong: string = result.output.exitCode;
            return `${code} ${wrong}`;
        }
    }
    // @ts-expect-error: no such option
    await CellkeepSandbox.create({ patience: 1 });
    return Object.keys(set).join();
}
