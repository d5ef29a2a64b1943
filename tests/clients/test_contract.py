# SPDX-License-Identifier: Apache-2.0
"""The server keeps to its own document: schemathesis makes requests from /openapi.json, good and bad
ones, and checks every answer against it, all its checks on. What it makes of the document's links is in
test_contract_walks.py.

The short form stops at REQUESTS_MAX requests for each operation. CELLKEEP_CONTRACT_EXAMPLES=N is the
long form: every boundary value and N random requests for each operation (docs/session-api.md).
"""

import hypothesis
import requests
import schemathesis
from contract import (
    EXAMPLES,
    LONG,
    SETTINGS,
    TIMEOUT,
    Running,
    headers,
    make_kind,
    make_schema,
    running,
)
from contract import validate as check
from document import read_document
from openapi_spec_validator import validate

__all__ = ["running"]  # a fixture
pytestmark = TIMEOUT
REQUESTS_MAX = 30
schema = make_schema(read_document())


def test_the_document_is_valid_and_is_what_the_server_gives(running: Running) -> None:
    document = read_document()
    validate(document)
    assert running.server.get("/openapi.json").json() == document


def test_a_host_that_is_too_long_is_refused(running: Running) -> None:
    host = read_document()["components"]["schemas"]["AllowedHost"]
    body = {"network": {"allow": ["0" * (host["maxLength"] + 1)]}}
    answer = running.server.request("PATCH", running.session.path, json=body)
    assert answer.status_code == 422, answer.text
    assert [error["pointer"] for error in answer.json()["errors"]] == ["/network/allow/0"]


@schema.parametrize()
@hypothesis.settings(
    SETTINGS,
    max_examples=EXAMPLES,
    phases=[hypothesis.Phase.explicit, hypothesis.Phase.generate],
)
def test_the_server_keeps_to_its_document(case: schemathesis.Case, running: Running) -> None:
    label = f"{case.method} {case.operation.path}"
    running.requests[label] += 1
    if not LONG and running.requests[label] > REQUESTS_MAX:
        return
    running.replace()
    make_kind(case, running)
    session = requests.Session()
    response = case.call(
        base_url=running.server.url, headers=headers(), session=session, timeout=60
    )
    session.close()
    check(case, response, headers=headers())
    if response.status_code == 201 and case.path == "/v1/sessions":
        path = "/v1/sessions/" + response.json()["id"]
        # 410: it was asked for with a lifetime of a second.
        assert running.server.request("DELETE", path).status_code in (204, 410)
    if case.method == "PATCH" and response.status_code == 200:
        running.renew()
