// SPDX-License-Identifier: Apache-2.0
//
// What `import { tools } from 'cellkeep'` gives: tools that the caller of an execution lends to its
// code, and those of the server's operator (protocol/tool_request.hpp). A call leaves over the
// link, and the code waits for the answer with its variables. The caller or the server runs the
// tool; nothing of it is in here but its name.
'use strict';

const { Array, Error, JSON, Object, Proxy, TypeError } = globalThis;
const { readFile } = require('node:fs/promises');
const { inspect } = require('node:util');

const WORKSPACE = '/workspace';
const FOUND_MAX = 20;

// A call that has no result. `reason` is 'failed' if the tool itself said so, else why it was not
// called: 'not_lent', 'too_large', 'malformed', 'too_many_calls' or 'no_caller'. Of the operator's
// tools also 'denied', 'not_approved', 'unavailable' and 'timeout'.
class ToolError extends Error {
    constructor(reason, message) {
        super(message);
        this.name = 'ToolError';
        this.reason = reason;
    }
}

// A result of more than 4 MiB: a file in the workspace, which is yours to remove.
class ResultFile {
    constructor({ path, bytes, media_type: mediaType, sha256 }) {
        Object.assign(this, { path: `${WORKSPACE}/${path}`, bytes, mediaType, sha256 });
    }

    // What a shorter result would have been: the text, or the value of the JSON.
    async read() {
        const text = await readFile(this.path, 'utf8');
        return this.mediaType === 'text/plain' ? text : JSON.parse(text);
    }

    toString() {
        return this.path;
    }
}

function checked(name, given) {
    const isObject = typeof given === 'object' && given !== null && !Array.isArray(given);
    if (!isObject) {
        throw new TypeError(`${name}: the arguments are one object, such as {title: 'x'}`);
    }
    try {
        return JSON.parse(JSON.stringify(given));
    } catch (error) {
        throw new TypeError(`${name}: arguments must be JSON values: ${error.message}`);
    }
}

function refuseUnless(good, answer) {
    if (!good) {
        throw new ToolError(answer.reason ?? 'failed', answer.message ?? '');
    }
}

// Its description, and a line for each argument; those that a call needs come first.
function explain({ description, input_schema: schema }) {
    const required = Array.isArray(schema?.required) ? schema.required : [];
    const properties = Object.entries(schema?.properties ?? {});
    const needed = ([name]) => (required.includes(name) ? 0 : 1);
    properties.sort((one, other) => needed(one) - needed(other));
    const lines = properties.map(([name, about]) => {
        const facts = [about?.type, needed([name]) === 1 ? 'optional' : undefined].filter((fact) => fact !== undefined);
        const line = facts.length > 0 ? `    ${name} (${facts.join(', ')})` : `    ${name}`;
        return about?.description === undefined ? line : `${line}: ${about.description}`;
    });
    return [...(description ? [description] : []), ...lines].join('\n');
}

// ask: sends an event and gives a promise of the request that answers it.
function makeTools(ask) {
    const call = async (name, given = {}) => {
        const answer = await ask({ event: 'tool', name: `${name}`, arguments: checked(name, given) });
        refuseUnless(answer.status === 'ok', answer);
        return answer.file === undefined ? answer.result : new ResultFile(answer.file);
    };
    const described = async () => {
        const answer = await ask({ event: 'tools' });
        refuseUnless(Array.isArray(answer.tools), answer);
        return answer.tools.sort((one, other) => (one.name < other.name ? -1 : 1));
    };
    const own = {
        __proto__: null,
        // The tool of this name, which need not be one that JavaScript can write.
        call,
        // Their names.
        list: async () => (await described()).map(({ name }) => name),
        // Those whose names or descriptions have all of these words: a text for each, of at most 20.
        search: async (words) => {
            const wanted = `${words}`.toLowerCase().split(/\s+/);
            const has = ({ name, description }) => {
                const text = `${name} ${description}`.toLowerCase();
                return wanted.every((word) => text.includes(word));
            };
            const found = (await described()).filter(has).slice(0, FOUND_MAX);
            return found.map((tool) => `${tool.name}: ${explain(tool)}`);
        },
    };
    // One of them, or the beginning of the names of several: tools.github.create_issue.
    const named = (name) => {
        const shown = () => (name === '' ? '[tools: tools.list() names them]' : `[tool ${name}]`);
        const target = Object.defineProperty(() => {}, inspect.custom, { value: shown });
        return new Proxy(target, {
            get(_, key) {
                if (typeof key === 'symbol') {
                    return target[key];
                }
                if (name === '' && key in own) {
                    return own[key];
                }
                // `await tools.a` asks for this: a tool is no promise.
                return key === 'then' ? undefined : named(name === '' ? key : `${name}.${key}`);
            },
            apply: (_, self, list) => call(name, ...list),
        });
    };
    return Object.freeze({ __proto__: null, ResultFile, ToolError, tools: named('') });
}

module.exports = { ToolError, makeTools };
