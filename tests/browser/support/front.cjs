// SPDX-License-Identifier: Apache-2.0
//
// A reverse proxy as an operator sets one up in front of two servers: one origin for a browser. Each
// address leads to the server that `choose` names, with that server's token.
'use strict';

const http = require('node:http');
const net = require('node:net');

// Passes on a request whose answer comes in one piece or in many.
function passRequest({ url, token }, request, response) {
    const { hostname, port } = new URL(url);
    const headers = { ...request.headers, authorization: `token ${token}` };
    const options = { hostname, port, path: request.url, method: request.method, headers };
    const passed = http.request(options, answer => {
        response.writeHead(answer.statusCode, answer.rawHeaders);
        answer.pipe(response);
    });
    passed.on('error', () => response.destroy());
    response.on('close', () => passed.destroy());
    request.pipe(passed);
}

// Passes on a WebSocket: its handshake as it came, then bytes.
function passUpgrade({ url, token }, request, socket, ahead) {
    const { hostname, port } = new URL(url);
    const passed = net.connect(Number(port), hostname, () => {
        const fields = [`Authorization: token ${token}`];
        for (let i = 0; i < request.rawHeaders.length; i += 2) {
            fields.push(`${request.rawHeaders[i]}: ${request.rawHeaders[i + 1]}`);
        }
        passed.write(`${request.method} ${request.url} HTTP/1.1\r\n${fields.join('\r\n')}\r\n\r\n`);
        passed.write(ahead);
        passed.pipe(socket);
        socket.pipe(passed);
    });
    for (const [one, other] of [
        [passed, socket],
        [socket, passed],
    ]) {
        one.on('error', () => other.destroy());
        one.on('close', () => other.destroy());
    }
}

// `choose(path)`: the { url, token } of a server. Returns { url, close }.
async function startFront(choose) {
    const server = http.createServer((request, response) => passRequest(choose(request.url), request, response));
    server.on('upgrade', (request, socket, ahead) => passUpgrade(choose(request.url), request, socket, ahead));
    await new Promise(resolve => server.listen(0, '127.0.0.1', resolve));
    return {
        url: `http://127.0.0.1:${server.address().port}`,
        close() {
            server.closeAllConnections?.();
            server.close();
        },
    };
}

module.exports = { startFront };
