// SPDX-License-Identifier: Apache-2.0
//
// Completion and inspection by looking at live values, without running any code of the user's: only
// plain names and dots are followed, and getters and proxies end the way.
'use strict';

const { Array, Function, Map, Object, Reflect, Set, String, globalThis: realm, process } = globalThis;
const fs = require('node:fs');
const nodeModule = require('node:module');
const path = require('node:path');
const util = require('node:util');
const vm = require('node:vm');

const { inspect } = require('./display');

const MATCHES_MAX = 500;
const SOURCE_MAX = 20000;
const HEAD_MAX = 500;
const PROTOTYPES_MAX = 50;
const NAME = /^[\p{ID_Start}$_][\p{ID_Continue}$\u200c\u200d]*$/u;
const CHAIN = /(?:[\p{ID_Start}$_][\p{ID_Continue}$\u200c\u200d]*\s*\??\.\s*)*[\p{ID_Start}$_]?[\p{ID_Continue}$\u200c\u200d]*$/u;
// UTF-16 units before the cursor that a chain of names may have: finding its beginning takes the
// square of this.
const CHAIN_MAX = 500;
const SPECIFIER = /(?:\brequire\s*\(|\bimport\s*\(|\bfrom|\bimport)\s*(['"])([^'"\n]*)$/;
const KEYWORDS = (
    'async await break case catch class const continue debugger default delete do else export extends false finally ' +
    'for function if import in instanceof let new null of return static super switch this throw true try typeof ' +
    'undefined var void while with yield'
).split(' ');
const TYPESCRIPT_KEYWORDS = 'abstract declare enum implements interface keyof namespace private protected public readonly satisfies type'.split(' ');

// Offsets in UTF-16 units for those in code points, and back.
const toUnits = (text, points) => Array.from(text).slice(0, points).join('').length;
const toPoints = (text, units) => Array.from(text.slice(0, units)).length;

// The names and dots that a text ends with; null if they are longer than the limit.
function chainBefore(text) {
    const chain = CHAIN.exec(text.slice(-CHAIN_MAX))[0];
    return chain.length === CHAIN_MAX ? null : chain;
}

const isObject = (value) => (typeof value === 'object' && value !== null) || typeof value === 'function';

// {value} of a property, or null if finding out would run code.
function property(object, name) {
    let at = isObject(object) ? object : object === undefined || object === null ? null : Object(object);
    for (let step = 0; at !== null && step < PROTOTYPES_MAX; step++) {
        if (util.types.isProxy(at)) {
            return null;
        }
        const found = Reflect.getOwnPropertyDescriptor(at, name);
        if (found !== undefined) {
            return 'value' in found ? { value: found.value } : null;
        }
        at = Reflect.getPrototypeOf(at);
    }
    return null;
}

function typeOf(value) {
    if (typeof value === 'function') {
        const source = Reflect.apply(String.prototype.slice, Function.prototype.toString.call(value), [0, 6]);
        return source.startsWith('class') ? 'class' : 'function';
    }
    return 'instance';
}

class Introspector {
    // names: the session's top-level names. lazy: global getters of Node's own, which may be run.
    constructor(names, typescript) {
        this.names = names;
        this.lazy = new Set(Object.getOwnPropertyNames(realm));
        this.keywords = typescript ? [...KEYWORDS, ...TYPESCRIPT_KEYWORDS] : KEYWORDS;
    }

    // {value} of a top-level name, or null.
    #top(name) {
        if (name === 'this') {
            return { value: realm };
        }
        if (this.names.has(name)) {
            return { value: vm.runInThisContext(name) };
        }
        const found = Reflect.getOwnPropertyDescriptor(realm, name);
        if (found !== undefined && 'get' in found && this.lazy.has(name)) {
            return { value: realm[name] };
        }
        return property(realm, name);
    }

    #chain(parts) {
        let found = this.#top(parts[0]);
        for (const part of parts.slice(1)) {
            found = found && property(found.value, part);
        }
        return found;
    }

    complete(code, cursor) {
        const end = toUnits(code, cursor);
        const before = code.slice(0, end);
        const answer = (matches, start) => ({
            status: 'ok',
            matches: matches.slice(0, MATCHES_MAX).map(({ text }) => text),
            types: matches.slice(0, MATCHES_MAX).map(({ text, type }) => ({ text, type, signature: '' })),
            start: toPoints(code, start),
            end: cursor,
        });
        const specifier = SPECIFIER.exec(before);
        if (specifier) {
            const typed = specifier[2];
            return answer(this.#modules(typed), end - typed.length);
        }
        const context = contextOf(before);
        if (context !== 'code') {
            return answer([], end);
        }
        const text = chainBefore(before);
        if (text === null) {
            return answer([], end);
        }
        const parts = text.split('.').map((part) => part.replace(/[\s?]+/g, ''));
        const prefix = parts.pop();
        const start = end - prefix.length;
        if (parts.length === 0) {
            const previous = before[start - 1];
            if (previous === '.' || previous === '#' || /[\p{ID_Continue}]/u.test(previous ?? '')) {
                return answer(literalMembers(before.slice(0, start - 1), prefix), start);
            }
            return answer(this.#topMatches(prefix, code, start), start);
        }
        if (before[start - text.length] === '.' || before[end - text.length - 1] === '.') {
            return answer([], end); // `f().a.b`: what f returns is not known
        }
        const found = this.#chain(parts);
        return answer(found === null ? [] : members(found.value, prefix), start);
    }

    #topMatches(prefix, code, start) {
        const matches = new Map();
        const add = (text, type) => {
            if (text.startsWith(prefix) && !matches.has(text) && (prefix || !text.startsWith('_'))) {
                matches.set(text, { text, type });
            }
        };
        for (const name of [...this.names.keys()].sort()) {
            add(name, typeOf(this.#top(name).value));
        }
        for (const name of namesIn(code, start)) {
            add(name, 'statement');
        }
        for (const name of this.keywords) {
            add(name, 'keyword');
        }
        for (const name of Object.getOwnPropertyNames(realm).sort()) {
            const found = Reflect.getOwnPropertyDescriptor(realm, name);
            if (name !== '$cellkeep') {
                add(name, 'value' in found ? typeOf(found.value) : 'instance');
            }
        }
        return [...matches.values()];
    }

    #modules(typed) {
        if (/^\.{0,2}\//.test(typed)) {
            const folder = typed.slice(0, typed.lastIndexOf('/') + 1);
            return list(path.resolve(process.cwd(), folder))
                .map((entry) => ({ text: folder + entry.name + (entry.isDirectory() ? '/' : ''), type: 'path' }))
                .filter(({ text }) => text.startsWith(typed));
        }
        const builtins = nodeModule.builtinModules.filter((name) => !name.startsWith('_'));
        const packages = list(path.join(process.cwd(), 'node_modules')).map(({ name }) => name);
        return [...builtins.map((name) => `node:${name}`), ...builtins, ...packages]
            .filter((text) => text.startsWith(typed) && !text.startsWith('node:node:'))
            .map((text) => ({ text, type: 'module' }));
    }

    inspect(code, cursor, detail) {
        const at = toUnits(code, cursor);
        const rest = /^[\p{ID_Continue}$\u200c\u200d]*/u.exec(code.slice(at))[0];
        let before = code.slice(0, at + rest.length);
        if (/\($/.test(before)) {
            before = before.slice(0, -1); // f(| asks for f
        }
        const text = chainBefore(before) ?? '';
        const parts = text.split('.').map((part) => part.replace(/[\s?]+/g, ''));
        const previous = before[before.length - text.length - 1];
        const found = parts.every((part) => NAME.test(part)) && previous !== '.' ? this.#chain(parts) : null;
        if (found === null) {
            return { status: 'ok', found: false, data: {} };
        }
        return { status: 'ok', found: true, data: { 'text/plain': describe(parts.join('.'), found.value, detail) } };
    }
}

function list(folder) {
    try {
        return fs.readdirSync(folder, { withFileTypes: true });
    } catch {
        return []; // no such folder: nothing to offer
    }
}

function members(object, prefix) {
    const matches = new Map();
    let at = isObject(object) ? object : object === undefined || object === null ? null : Object(object);
    for (let step = 0; at !== null && step < PROTOTYPES_MAX && !util.types.isProxy(at); step++) {
        // The elements of an array are no names, and may be many.
        const list = step === 0 && (util.types.isTypedArray(at) || Array.isArray(at));
        const names = list ? ['length'] : Object.getOwnPropertyNames(at);
        for (const name of names.filter((one) => one.startsWith(prefix) && NAME.test(one)).sort()) {
            const found = Reflect.getOwnPropertyDescriptor(at, name);
            const type = found === undefined || !('value' in found) ? 'property' : typeOf(found.value);
            if (!matches.has(name)) {
                matches.set(name, { text: name, type });
            }
        }
        at = Reflect.getPrototypeOf(at);
    }
    return [...matches.values()];
}

// `"text".` and `[1].`
function literalMembers(before, prefix) {
    if (/['"`]$/.test(before)) {
        return members('', prefix);
    }
    return /\]$/.test(before) && !/[\p{ID_Continue}$)\]]\s*\[[^[\]]*\]$/u.test(before) ? members([], prefix) : [];
}

// The names that the code itself declares before a place.
function namesIn(code, start) {
    const found = new Set();
    for (const one of code.slice(0, start).matchAll(/\b(?:let|const|var|function|class)\s+([\p{ID_Start}$_][\p{ID_Continue}$]*)/gu)) {
        found.add(one[1]);
    }
    return [...found].sort();
}

// Whether a text ends within 'code', a 'string' or a 'comment'.
function contextOf(text) {
    const stack = [];
    for (let i = 0; i < text.length; i++) {
        const state = stack[stack.length - 1];
        const one = text[i];
        const two = text.slice(i, i + 2);
        if (state === '//') {
            if (one === '\n') stack.pop();
        } else if (state === '/*') {
            if (two === '*/') stack.pop(), i++;
        } else if (state === "'" || state === '"' || state === '`') {
            if (one === '\\') i++;
            else if (one === state || (one === '\n' && state !== '`')) stack.pop();
            else if (state === '`' && two === '${') stack.push('{'), i++;
        } else if (two === '//' || two === '/*') {
            stack.push(two), i++;
        } else if (one === "'" || one === '"' || one === '`') {
            stack.push(one);
        } else if (one === '{') {
            stack.push('{');
        } else if (one === '}' && state === '{') {
            stack.pop();
        }
    }
    const state = stack[stack.length - 1] ?? '{';
    return state === '{' ? 'code' : state.startsWith('/') ? 'comment' : 'string';
}

// `async function name(a, b = 1)`, `class Name extends Base`.
function headOf(name, source) {
    if (source.startsWith('class')) {
        const base = /^class\b[^{]*?\b(extends\s[^{]*)/.exec(source);
        return `class ${name} ${base ? base[1] : ''}`.trim();
    }
    const kind = /^async\b/.test(source) ? 'async function' : 'function';
    const bare = /^(?:async\s+)?([\p{ID_Start}$_][\p{ID_Continue}$]*)\s*=>/u.exec(source);
    return `${kind} ${name}${bare ? `(${bare[1]})` : parametersOf(source)}`;
}

// From the first bracket to the one that closes it.
function parametersOf(source) {
    const start = source.indexOf('(');
    let depth = 0;
    for (let i = start; i >= 0 && i < source.length; i++) {
        if ('([{'.includes(source[i])) {
            depth++;
        } else if (')]}'.includes(source[i]) && --depth === 0) {
            return source.slice(start, i + 1);
        }
    }
    return '()';
}

function describe(name, value, detail) {
    const lines = [];
    if (typeof value === 'function') {
        const source = Function.prototype.toString.call(value);
        lines.push(headOf(name, source).slice(0, HEAD_MAX));
        if (detail > 0) {
            lines.push('', source.slice(0, SOURCE_MAX));
        }
    } else {
        const type = value === null ? 'null' : typeof value;
        const made = isObject(value) && !util.types.isProxy(value) ? property(value, 'constructor')?.value : null;
        lines.push(`${name}: ${typeof made === 'function' ? String(property(made, 'name')?.value ?? type) : type}`);
        lines.push(util.inspect(value, { depth: detail > 0 ? 4 : 1, customInspect: false, getters: false }));
    }
    return lines.join('\n').trimEnd();
}

module.exports = { Introspector };
