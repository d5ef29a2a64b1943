# SPDX-License-Identifier: Apache-2.0
"""The document's examples fit its schemas, and it names what the sources answer with. No server runs."""

import json
import re
from collections.abc import Iterator
from pathlib import Path

from document import operations_of, read_document
from jsonschema import Draft202012Validator

SOURCES = Path(__file__).parents[2] / "kernel-manager"


def test_every_example_in_the_document_fits_its_schema() -> None:
    document = read_document()
    count = 0
    for name, examples, wanted in bodies(document):
        for example in examples:
            whole = {**wanted, "components": document["components"]}
            validator = Draft202012Validator(whole)
            problems = [error.message for error in validator.iter_errors(example)]
            assert not problems, f"{name}: {problems}"
            count += 1
    assert count > 30


def events_of(media: str, text: str) -> list[dict]:
    """The events of a stream as it is on the wire."""
    if media == "application/x-ndjson":
        return [json.loads(line) for line in text.splitlines()]
    events = []
    for block in text.removesuffix("\n\n").split("\n\n"):
        fields = dict(line.split(": ", 1) for line in block.splitlines())
        events.append(json.loads(fields["data"]))
        assert fields["event"] == events[-1]["type"]
        assert fields.get("id") == (str(events[-1]["seq"]) if "seq" in events[-1] else None)
    return events


def test_every_example_of_a_stream_is_one() -> None:
    document = read_document()
    streams = 0
    for path, method, operation in operations_of(document):
        for media, body in operation["responses"].get("200", {}).get("content", {}).items():
            if media not in ("text/event-stream", "application/x-ndjson"):
                continue
            if path.startswith("/v1/batch"):
                check_batch_lines(document, body)
                continue
            of_process = "/processes/" in path
            of_files = path.endswith("/files")
            name, last = ("ProcessEvent", "exited") if of_process else ("Event", "finished")
            name, last = ("FileEvent", "end") if of_files else (name, last)
            event = {"$ref": f"#/components/schemas/{name}", "components": document["components"]}
            (example,) = body["examples"].values()
            events = events_of(media, example["value"])
            for one in events:
                Draft202012Validator(event).validate(one)
            numbers = [one["seq"] for one in events if "seq" in one]
            if of_files:
                assert not numbers  # nothing is kept for a reader that comes back
            elif of_process:  # counts bytes
                assert numbers == sorted(set(numbers)), path
            else:
                first = 1 if method == "post" else 3
                assert numbers == list(range(first, first + len(numbers))), path
            assert [one["type"] for one in events].index(last) == len(events) - 1
            streams += 1
    assert streams == 12  # six operations, two forms


def check_batch_lines(document: dict, body: dict) -> None:
    """Lines of items, and then the summary."""
    (example,) = body["examples"].values()
    *items, last = [json.loads(line) for line in example["value"].splitlines()]
    assert items
    for name, lines in (("BatchLine", items), ("BatchSummary", [last])):
        schema = {"$ref": f"#/components/schemas/{name}", "components": document["components"]}
        for line in lines:
            Draft202012Validator(schema).validate(line)


def test_what_the_server_may_answer_with_stands_in_the_document() -> None:
    """Every status and every kind of problem that the sources of /v1 and of HTTP itself name."""
    document = read_document()
    answers = document["components"]["responses"].values()
    examples = [body["example"] for one in answers for body in one["content"].values()]
    statuses = {str(example["status"]) for example in examples}
    description = document["components"]["schemas"]["Problem"]["properties"]["type"]["description"]
    text = "".join(
        path.read_text(encoding="utf-8")
        for folder in ("http", "api", "preview")
        for path in sorted((SOURCES / folder).rglob("*.cpp"))
    )
    named = re.findall(r'make_problem\(\s*(\d{3}),\s*"([a-z-]+)",', text)
    usual = re.findall(r'Known\{(\d{3}), "([a-z-]+)", "([^"]+)"', text)
    assert len(named) > 15 and len(usual) > 20
    # Not of an operation in the document: a method that an address does not know, and a kernel of
    # /api that breaks the protocol.
    elsewhere = {"method-not-allowed", "kernel-protocol"}
    kinds = {kind for _, kind in named} | {kind for _, kind, _ in usual}
    made = {status for status, _ in named} | {s for s, kind, _ in usual if kind not in elsewhere}
    assert made == statuses, made ^ statuses
    listed = set(re.findall(r"`([a-z-]+)`", description))
    assert kinds - {"kernel-protocol"} == listed, kinds ^ listed
    titles = {kind: title for _, kind, title in usual}
    for example in examples:
        kind = example["type"].removeprefix("/problems/")
        assert kind in kinds and example["title"] == titles.get(kind, example["title"])


def bodies(document: dict) -> Iterator[tuple[str, list, dict]]:
    """Every JSON body of a request or an answer: its name, its examples, its schema."""

    def of(name: str, content: dict) -> Iterator[tuple[str, list, dict]]:
        for media, body in content.items():
            if "json" in media and "ndjson" not in media:
                examples = [one["value"] for one in body.get("examples", {}).values()]
                examples += [body["example"]] if "example" in body else []
                yield name, examples, body["schema"]

    for path, method, operation in operations_of(document):
        name = f"{method.upper()} {path}"
        yield from of(name, operation.get("requestBody", {}).get("content", {}))
        for answer in operation["responses"].values():
            yield from of(name, answer.get("content", {}))
    for name, answer in document["components"]["responses"].items():
        yield from of(name, answer.get("content", {}))
