// SPDX-License-Identifier: Apache-2.0
//
// Which nodes of a tree bind names for what is below them, and which names.
'use strict';

const { isFunction, targets, upwards, walk } = require('./syntax');

const isScope = (node) =>
    isFunction(node) ||
    /^(BlockStatement|For(In|Of)?Statement|CatchClause|SwitchStatement|StaticBlock|Class(Declaration|Expression))$/.test(node.type);

function declaredIn(statements, names) {
    for (const node of statements) {
        if (node?.type === 'VariableDeclaration' && node.kind !== 'var') {
            node.declarations.forEach((one) => targets(one.id).forEach((id) => names.add(id.name)));
        } else if (node?.type === 'FunctionDeclaration' || node?.type === 'ClassDeclaration') {
            names.add(node.id.name);
        }
    }
}

// The names that are bound by this node for what is below it. `vars` of a function are found by
// the walk over it.
function ownNames(node) {
    const names = new Set();
    if (isFunction(node)) {
        node.params.forEach((param) => targets(param).forEach((id) => names.add(id.name)));
        names.add('arguments');
        if (node.type === 'FunctionExpression' && node.id) {
            names.add(node.id.name);
        }
        walk(node.body, (inner, up) => {
            if (inner.type === 'VariableDeclaration' && inner.kind === 'var' && !crossesFunction(up)) {
                inner.declarations.forEach((one) => targets(one.id).forEach((id) => names.add(id.name)));
            }
        });
    } else if (node.type === 'CatchClause') {
        targets(node.param).forEach((id) => names.add(id.name));
    } else if (node.type === 'SwitchStatement') {
        node.cases.forEach((one) => declaredIn(one.consequent, names));
    } else if (node.type.startsWith('Class')) {
        if (node.id) {
            names.add(node.id.name);
        }
    } else if (node.type.startsWith('For')) {
        declaredIn([node.init ?? node.left], names);
    } else {
        declaredIn(node.body, names);
    }
    return names;
}

function crossesFunction(up) {
    for (const node of upwards(up)) {
        if (isFunction(node) || node.type === 'StaticBlock') {
            return true;
        }
    }
    return false;
}

module.exports = { crossesFunction, isScope, ownNames };
