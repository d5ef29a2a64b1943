# SPDX-License-Identifier: Apache-2.0
"""The server keeps to its own document: schemathesis makes requests from /openapi.json, good and bad
ones, and checks every answer against it, all its checks on.

The short form stops at REQUESTS_MAX requests for each operation. CELLKEEP_CONTRACT_EXAMPLES=N is the
long form: every boundary value and N random requests for each operation (README.md).
"""

import json
import os
import tempfile
import uuid
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import hypothesis
import pytest
import requests
import schemathesis
from harness import TOKEN, Server
from openapi_spec_validator import validate
from schemathesis.checks import CHECKS, load_all_checks

DOCUMENT = Path(__file__).parents[2] / "kernel-manager/agent/openapi.json"
LONG = "CELLKEEP_CONTRACT_EXAMPLES" in os.environ
EXAMPLES = int(os.environ.get("CELLKEEP_CONTRACT_EXAMPLES", "4"))
REQUESTS_MAX = 30
SETTINGS = hypothesis.settings(
    max_examples=EXAMPLES,
    derandomize=not LONG,
    deadline=None,
    database=None,
    suppress_health_check=list(hypothesis.HealthCheck),
    phases=[hypothesis.Phase.explicit, hypothesis.Phase.generate],
)
# Good in form and yet refused, for what no document can know: limits that would go up, cursors of no
# page, versions of no file, ranges behind its end, hosts whose grammar no pattern holds, files where a
# directory is.
MAY_BE_REFUSED_ALTHOUGH_VALID = {"PATCH /v1/sessions/{id}"}
OPAQUE_QUERY = {"after"}
OPAQUE_HEADERS = {"If-Match", "If-None-Match", "If-Range", "Range"}

# Leaves nothing behind: no folder beside the tests.
HYPOTHESIS_HOME = tempfile.TemporaryDirectory(prefix="cellkeep-hypothesis-")  # gone at the exit
hypothesis.configuration.set_hypothesis_home_dir(HYPOTHESIS_HOME.name)
load_all_checks()
schema = schemathesis.openapi.from_dict(json.loads(DOCUMENT.read_text(encoding="utf-8")))
# Query parameters and headers that nobody knows are ignored, as everywhere in HTTP.
schema.config.generation.allow_extra_parameters = False


class Running:
    """The server, with one session, one file and one execution that requests may name."""

    def __init__(self, server: Server) -> None:
        self.server = server
        self.session = server.create()
        self.requests: Counter[str] = Counter()
        self.replace()

    def replace(self) -> None:
        """Makes sure that what is named is there: a DELETE before may have been good."""
        if self.server.get(self.session.path).status_code != 200:
            self.session = self.server.create()
        self.execution = self.session.execute("1")["id"]
        self.server.request("PUT", self.session.path + "/files/known.txt", data=b"known")


@pytest.fixture(scope="module")
def running() -> Iterator[Running]:
    with Server("--log-format", "text", "--max-sessions", "40") as server:
        yield Running(server)


def test_the_document_is_valid_and_is_what_the_server_gives(running: Running) -> None:
    document = json.loads(DOCUMENT.read_text(encoding="utf-8"))
    validate(document)
    assert running.server.get("/openapi.json").json() == document


def test_every_example_in_the_document_fits_its_schema() -> None:
    document = json.loads(DOCUMENT.read_text(encoding="utf-8"))
    count = 0
    for name, examples, wanted in bodies(document):
        for example in examples:
            whole = {**wanted, "components": document["components"]}
            validator = schemathesis_validator(whole)
            problems = [error.message for error in validator.iter_errors(example)]
            assert not problems, f"{name}: {problems}"
            count += 1
    assert count > 30


def schemathesis_validator(whole: dict) -> object:
    from jsonschema import Draft202012Validator

    return Draft202012Validator(whole)


def bodies(document: dict) -> Iterator[tuple[str, list, dict]]:
    """Every JSON body of a request or an answer: its name, its examples, its schema."""

    def of(name: str, content: dict) -> Iterator[tuple[str, list, dict]]:
        for media, body in content.items():
            if "json" in media and "ndjson" not in media:
                examples = [one["value"] for one in body.get("examples", {}).values()]
                examples += [body["example"]] if "example" in body else []
                yield name, examples, body["schema"]

    for path, item in document["paths"].items():
        for method, operation in item.items():
            if method == "parameters":
                continue
            name = f"{method.upper()} {path}"
            yield from of(name, operation.get("requestBody", {}).get("content", {}))
            for answer in operation["responses"].values():
                yield from of(name, answer.get("content", {}))
    for name, answer in document["components"]["responses"].items():
        yield from of(name, answer.get("content", {}))


def make_kind(case: schemathesis.Case, running: Running) -> None:
    """Half of the requests name what is there, and none asks for what the document cannot know."""
    known = {"id": running.session.info["id"], "exe": running.execution, "path": "known.txt"}
    marker = hash(repr(case.path_parameters)) % 2
    for name, value in known.items():
        if name in (case.path_parameters or {}) and (marker or name == "id"):
            case.path_parameters[name] = value
    # The token is in the header; a second one in the query is not what is tried here. Of two places in
    # one stream the query's counts.
    (case.query or {}).pop("token", None)
    if "after" in (case.query or {}):
        (case.headers or {}).pop("Last-Event-ID", None)
    if isinstance(case.body, dict):
        # Only while they are good: a bad one must stay as bad as it was made.
        if isinstance(case.body.get("idempotency_key"), str):
            key = case.body["idempotency_key"]
            case.body["idempotency_key"] = uuid.uuid4().hex if len(key) <= 255 else key
        timeout = case.body.get("timeout_ms")
        if isinstance(timeout, int) and not isinstance(timeout, bool) and 0 < timeout <= 86_400_000:
            case.body["timeout_ms"] = min(timeout, 1000)


def may_be_refused(case: schemathesis.Case) -> bool:
    body = case.body if isinstance(case.body, dict) else {}
    files, network = body.get("files") or [], body.get("network") or {}
    return (
        bool(files)
        or (isinstance(network, dict) and bool(network.get("allow")))
        or f"{case.method} {case.path}" in MAY_BE_REFUSED_ALTHOUGH_VALID
        or not OPAQUE_QUERY.isdisjoint(case.query or {})
        or not OPAQUE_HEADERS.isdisjoint(case.headers or {})
    )


@schema.parametrize()
@SETTINGS
def test_the_server_keeps_to_its_document(case: schemathesis.Case, running: Running) -> None:
    label = f"{case.method} {case.operation.path}"
    running.requests[label] += 1
    if not LONG and running.requests[label] > REQUESTS_MAX:
        return
    running.replace()
    make_kind(case, running)
    excluded = []
    if may_be_refused(case):
        excluded.append(CHECKS.get_one("positive_data_acceptance"))
    session = requests.Session()
    response = case.call_and_validate(
        base_url=running.server.url,
        headers={"Authorization": f"Bearer {TOKEN}"},
        session=session,
        excluded_checks=excluded,
        timeout=60,
    )
    session.close()
    if response.status_code == 201 and case.path == "/v1/sessions":
        path = "/v1/sessions/" + response.json()["id"]
        assert running.server.request("DELETE", path).status_code == 204
