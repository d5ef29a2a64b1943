# SPDX-License-Identifier: Apache-2.0
"""A data-analysis agent's day on real data, step upon step in one session: clean a messy CSV, trip and
recover by what the errors say, run out of memory and read in chunks, draw, deliver, and run out of budget.
"""

import csv
import hashlib
import io
from collections.abc import Iterator
from pathlib import Path

import pytest
from harness import TOKEN, Server

from cellkeep import Client, LimitReached, Result, Session

DATA = Path(__file__).parent / "data/penguins-raw.csv"


@pytest.fixture(scope="module")
def client() -> Iterator[Client]:
    with Server("--log-format", "text") as server, Client(server.url, TOKEN) as made:
        yield made


def ok(session: Session, code: str, why: str = "") -> Result:
    result = session.run(code, reasoning=why)
    assert result.ok, result.report()
    return result


CLEANING = [
    ("df.columns = [c.split(' (')[0].strip().lower().replace(' ', '_') for c in df.columns]", ""),
    ("df['date_egg'] = pd.to_datetime(df['date_egg']); str(df['date_egg'].dtype)[:10]", "'datetime64'"),
    ("df['species'] = df['species'].str.split().str[0]; sorted(df['species'].unique())", "Gentoo"),
    ("df['sex'] = df['sex'].str.lower().where(df['sex'].isin(['MALE', 'FEMALE']))", ""),
    ("int(df['sex'].isna().sum())", "11"),
    ("constant = [c for c in df if df[c].nunique(dropna=False) == 1]; constant", "'region'"),
    ("df = df.drop(columns=constant + ['comments']); 'region' in df", "False"),
    ("df['year'] = df['date_egg'].dt.year; df['year'].nunique()", "3"),
    ("measured = ['culmen_length', 'culmen_depth', 'flipper_length', 'body_mass']", ""),
    ("df = df.dropna(subset=measured); len(df)", "342"),
    ("df['body_mass_kg'] = df['body_mass'] / 1000; df = df.drop(columns='body_mass')", ""),
    ("int(df.duplicated(['studyname', 'sample_number', 'species']).sum())", "0"),
]


def test_the_day(client: Client, tmp_path: Path) -> None:
    with client.create(
        files={"penguins-raw.csv": DATA}, metadata={"agent": "naturalist", "task": "T-17"}
    ) as session:
        ok(session, "import pandas as pd; df = pd.read_csv('penguins-raw.csv')", "load")
        assert ok(session, "df.shape").text == "(344, 17)"

        # A wrong name: the error says which line and which name; the columns tell the right one.
        wrong = session.run("kept = df.dropna()\ndf['Body Mass'].mean()")
        assert wrong.status == "error" and wrong.error is not None
        assert (wrong.error.kind, wrong.error.name, wrong.error.line) == ("runtime", "KeyError", 2)
        assert "Body Mass" in wrong.error.message
        columns = ok(session, "print(*df.columns, sep='|')").stdout.strip().split("|")
        (right,) = [name for name in columns if name.startswith("Body Mass")]
        mean = ok(session, f"float(round(df[{right!r}].mean()))", "retry with the real name")
        assert mean.text == "4202.0"

        # A slip of the pen: nothing of the cell ran, and the place is known.
        slip = session.run("ran = True\nratio = df['Culmen Length (mm)' / 2\n")
        assert slip.status == "error" and slip.error is not None
        assert slip.error.kind == "syntax" and slip.error.line == 2
        assert slip.error.column is not None
        assert session.run("ran").status == "error"

        for code, expected in CLEANING:
            assert expected in ok(session, code, "clean").text, code

        assert "5." in ok(session, "df.groupby('species')['body_mass_kg'].mean()['Gentoo']").text
        pictures = draw(session)
        for number, picture in enumerate(pictures):
            saved = picture.save(tmp_path / f"{number}.png")
            assert saved.read_bytes().startswith(b"\x89PNG\r\n")

        delivered = ok(session, "df.to_csv('clean.csv', index=False)", "deliver")
        (artifact,) = [one for one in delivered.artifacts if one.path == "clean.csv"]
        assert (artifact.change, artifact.media_type) == ("created", "text/csv")
        content = session.read(artifact)
        assert hashlib.sha256(content).hexdigest() == artifact.sha256
        rows = list(csv.DictReader(io.StringIO(content.decode())))
        assert len(rows) == 342
        assert {row["species"] for row in rows} == {"Adelie", "Chinstrap", "Gentoo"}
        assert all(2.5 < float(row["body_mass_kg"]) < 6.5 for row in rows)
        assert session.refresh().executions >= 20
        reasons = [one.reasoning for one in session.executions()]
        assert "retry with the real name" in reasons


def draw(session: Session) -> tuple:
    result = ok(
        session,
        "import matplotlib.pyplot as plt\n"
        "for name, column in [('mass', 'body_mass_kg'), ('flipper', 'flipper_length')]:\n"
        "    df.boxplot(column=column, by='species')\n"
        "    plt.savefig(f'{name}.png')\n"
        "    plt.show()\n"
        "df.plot.scatter('flipper_length', 'body_mass_kg')\n"
        "plt.savefig('scatter.png')\n"
        "plt.show()\n",
        "draw",
    )
    assert len(result.images) == 3
    made = {one.path: one.media_type for one in result.artifacts}
    assert made == dict.fromkeys(["flipper.png", "mass.png", "scatter.png"], "image/png")
    return result.images


def test_too_much_at_once_is_an_error_and_chunks_fit(client: Client) -> None:
    limits = {"memory_mb": 320, "disk_mb": 100}
    with client.create(files={"penguins-raw.csv": DATA}, limits=limits) as session:
        ok(
            session,
            "head, *rows = open('penguins-raw.csv').readlines()\n"
            "with open('big.csv', 'w') as big:\n"
            "    big.write(head)\n"
            "    for _ in range(400):\n"
            "        big.writelines(rows)\n"
            "del rows",
        )
        greedy = session.run(
            "cells = [line.split(',') for _ in range(20) for line in open('big.csv')]"
        )
        assert greedy.status == "oom" and greedy.error is not None
        assert greedy.error.kind == "oom" and greedy.error.hint
        chunked = ok(
            session,
            "import pandas as pd\n"
            "total = count = 0\n"
            "for part in pd.read_csv('big.csv', chunksize=10_000, usecols=['Body Mass (g)']):\n"
            "    masses = part['Body Mass (g)'].dropna()\n"
            "    total += masses.sum()\n"
            "    count += len(masses)\n"
            "count, round(total / count)",
            "read in chunks after running out of memory",
        )
        assert chunked.text == "(136800, 4202)"


def test_a_spent_budget_ends_the_day_and_says_so(client: Client) -> None:
    with client.create(limits={"executions": 3}) as session:
        for number in range(3):
            ok(session, f"{number}")
        with pytest.raises(LimitReached) as raised:
            session.run("3")
        assert raised.value.budget == "executions"
        assert (raised.value.used, raised.value.limit) == (3, 3)
        assert "executions" in raised.value.detail
        # What was made stays within reach.
        session.upload("notes", "notes.txt")
        assert session.read_text("notes.txt") == "notes"
