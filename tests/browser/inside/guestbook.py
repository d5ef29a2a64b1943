# SPDX-License-Identifier: Apache-2.0
"""A plain Flask application: a form, redirects, a cookie of its own, static data by fetch()."""

import sys

from flask import Flask, jsonify, redirect, render_template_string, request, session, url_for

app = Flask(__name__)
app.secret_key = "of the tests"
names: list[str] = []

PAGE = """<!doctype html><title>Guests</title>
<h1>{{ names | length }} guests</h1>
<ul>{% for name in names %}<li>{{ name }}</li>{% endfor %}</ul>
<p id="mine">{{ mine }}</p>
<form method="post" action="{{ url_for('sign') }}"><input name="name"><button>Sign</button></form>
<a href="{{ url_for('index', _external=True) }}">Again</a>
"""


@app.get("/")
def index() -> str:
    return render_template_string(PAGE, names=names, mine=session.get("name", "no name yet"))


@app.post("/sign")
def sign() -> object:
    session["name"] = request.form["name"]
    names.append(request.form["name"])
    return redirect(url_for("index", _external=True))


@app.get("/seen")
def seen() -> object:
    """What of the visitor's request comes inside."""
    return jsonify(list(request.headers.items()))


if __name__ == "__main__":
    app.run("127.0.0.1", int(sys.argv[1]))
