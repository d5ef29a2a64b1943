// SPDX-License-Identifier: Apache-2.0
//
// Drives the server with one of the protocol's own clients for JavaScript and writes one JSON object of what it
// found. node drive.mjs PACKAGES JOB, a JSON object: client ("client", "sdk"), revision ("modern", "legacy"),
// url and token or command and args, task ("tour", "watch", "ask", "hang", "many").
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";
import { join } from "node:path";

const [packages, text] = process.argv.slice(2);
const job = JSON.parse(text);
const require = createRequire(pathToFileURL(join(packages, "x.js")));
const modern = job.revision === "modern";
const { Client, StreamableHTTPClientTransport, StdioClientTransport } =
    job.client === "client"
        ? {
              ...require("@modelcontextprotocol/client"),
              ...require("@modelcontextprotocol/client/stdio"),
          }
        : {
              ...require("@modelcontextprotocol/sdk/client/index.js"),
              ...require("@modelcontextprotocol/sdk/client/streamableHttp.js"),
              ...require("@modelcontextprotocol/sdk/client/stdio.js"),
          };

function transport() {
    if (job.command) {
        return new StdioClientTransport({ command: job.command, args: job.args, env: process.env });
    }
    return new StreamableHTTPClientTransport(new URL(job.url), {
        requestInit: { headers: { Authorization: `Bearer ${job.token}` } },
    });
}

async function connect(capabilities = {}, options = {}) {
    const client = new Client(
        { name: "drive", version: "1" },
        {
            capabilities,
            ...options,
            ...(modern ? { versionNegotiation: { mode: { pin: "2026-07-28" } } } : {}),
        },
    );
    await client.connect(transport());
    return client;
}

async function run(client, code, more = {}) {
    const answer = await client.callTool({ name: "run_code", arguments: { code, session: job.session, ...more } });
    return answer.structuredContent;
}

async function tour() {
    const client = await connect();
    const found = { tools: (await client.listTools()).tools.map((tool) => tool.name) };
    await run(client, "a = 40");
    found.result = (await run(client, "a + 2")).result;
    const failed = await client.callTool({ name: "run_code", arguments: { code: "1 / 0", session: job.session } });
    found.failed = [failed.isError, failed.structuredContent.error.name];
    const file = { path: "a b.txt", text: "from here", session: job.session };
    const uri = (await client.callTool({ name: "write_file", arguments: file })).structuredContent.uri;
    found.read = (await client.readResource({ uri })).contents[0].text;
    found.prompts = (await client.listPrompts()).prompts.map((prompt) => prompt.name);
    found.templates = (await client.listResourceTemplates()).resourceTemplates.length;
    const ref = { type: "ref/resource", uri: "cellkeep://sessions/{session}/files/{+path}" };
    const context = { arguments: { session: job.session } };
    found.completed = (
        await client.complete({ ref, argument: { name: "path", value: "a" }, context })
    ).completion.values;
    try {
        await client.readResource({ uri: uri + ".missing" });
    } catch (error) {
        found.missing = error.code;
    }
    await client.callTool({ name: "close_session", arguments: { session: job.session } });
    await client.close();
    return found;
}

/** Hears of a file that another client changes. */
async function watch() {
    const heard = [];
    let told;
    const change = new Promise((resolve) => (told = resolve));
    const client = await connect();
    const uri = (
        await client.callTool({ name: "write_file", arguments: { path: "w", text: "1", session: job.session } })
    ).structuredContent.uri;
    const hear = (notification) => {
        heard.push(notification.params.uri);
        told();
    };
    const schema =
        job.client === "client"
            ? "notifications/resources/updated"
            : require("@modelcontextprotocol/sdk/types.js").ResourceUpdatedNotificationSchema;
    client.setNotificationHandler(schema, hear);
    const subscription = modern
        ? await client.listen({ resourceSubscriptions: [uri] })
        : await client.subscribeResource({ uri });
    await run(client, "open('w', 'w').write('22')");
    await change;
    await subscription?.close?.();
    await client.callTool({ name: "close_session", arguments: { session: job.session } });
    await client.close();
    return { heard: heard[0] === uri };
}

/** Answers what the server asks. */
async function ask() {
    const client = await connect({ elicitation: {} });
    const schema =
        job.client === "client"
            ? "elicitation/create"
            : require("@modelcontextprotocol/sdk/types.js").ElicitRequestSchema;
    const asked = [];
    client.setRequestHandler(schema, async (request) => {
        asked.push(request.params.message);
        return { action: "accept", content: { username: "ada", email: "a@b.example", name: "ada" } };
    });
    const name = modern ? "test_input_required_result_elicitation" : "test_elicitation";
    const answer = await client.callTool({ name, arguments: { message: "Who?" } });
    await client.close();
    return { asked, said: answer.content[0].text };
}

/** Says when its code runs, and then waits to be killed. */
async function hang() {
    const client = await connect();
    await run(client, "kept = 1");
    const waiting = run(client, "import time\nprint('runs', flush=True)\nwhile True: time.sleep(0.1)", {
        wait_ms: 600000,
    });
    const poll = async () => {
        const { sessions } = (await client.callTool({ name: "list_sessions", arguments: {} })).structuredContent;
        return sessions.some((session) => session.session === job.session && session.running.length > 0);
    };
    while (!(await poll()));
    console.log(JSON.stringify({ runs: true }));
    try {
        await waiting;
        return { ended: "with an answer" };
    } catch (error) {
        return { ended: String(error) };
    }
}

async function many() {
    const one = async (number) => {
        const client = await connect();
        const answer = await client.callTool({
            name: "run_code",
            arguments: { code: `x${number} = ${number}\nx${number}`, session: `${job.session}-${number % 5}` },
        });
        await client.close();
        return answer.structuredContent.result;
    };
    const results = await Promise.all(Array.from({ length: job.clients }, (_, number) => one(number)));
    const client = await connect();
    for (let number = 0; number < 5; ++number) {
        await client.callTool({ name: "close_session", arguments: { session: `${job.session}-${number}` } });
    }
    await client.close();
    return { right: results.every((result, number) => result === String(number)) };
}

console.log(JSON.stringify(await { tour, watch, ask, hang, many }[job.task]()));
process.exit(0);
