// SPDX-License-Identifier: Apache-2.0
//
// Shows /openapi.json with the viewer. The token comes from the page's address (?token=…) or is asked
// for; it is kept in this page's memory only and goes to this server only.
'use strict';

(() => {
    const base = new URL('.', location.href).href.replace(/\/$/, '');
    const form = document.getElementById('ask');
    const trouble = document.getElementById('trouble');

    const show = async (token) => {
        const headers = token ? { Authorization: `Bearer ${token}` } : {};
        let answer;
        try {
            answer = await fetch(`${base}/openapi.json`, { headers });
        } catch (error) {
            trouble.textContent = `The server does not answer: ${error.message}`;
            return;
        }
        form.hidden = answer.status !== 401;
        if (!answer.ok) {
            trouble.textContent = token || answer.status !== 401 ? `The server refuses: ${answer.status}` : '';
            return;
        }
        trouble.textContent = '';
        const spec = await answer.json();
        spec.servers = [{ url: base }];
        if (typeof SwaggerUIBundle === 'undefined') {
            const plain = document.createElement('pre');
            plain.textContent = JSON.stringify(spec, null, 1);
            document.getElementById('viewer').replaceChildren(plain);
            return;
        }
        SwaggerUIBundle({
            spec,
            dom_id: '#viewer',
            validatorUrl: null,
            docExpansion: 'list',
            defaultModelsExpandDepth: 0,
            displayRequestDuration: true,
            requestInterceptor: (request) => {
                if (token && new URL(request.url, location.href).origin === location.origin) {
                    request.headers.Authorization = `Bearer ${token}`;
                }
                return request;
            },
        });
    };

    const address = new URL(location.href);
    const given = address.searchParams.get('token') ?? '';
    address.searchParams.delete('token');
    history.replaceState(null, '', address.href); // Not for the history, nor for a shoulder.
    form.addEventListener('submit', (event) => {
        event.preventDefault();
        show(document.getElementById('token').value);
    });
    show(given);
})();
