# SPDX-License-Identifier: Apache-2.0
"""One table in four dialects, normalized by code that an agent wrote: generate, test, run, compare.

The inputs differ in delimiter, decimal mark, date form, encoding, line ends and stray blanks. The first
draft trusts `pandas.read_csv`; comparing what each file became shows which ones it got wrong; the second
draft looks first. The four results must be the same bytes.

Needs a running server (`cellkeep serve`) and the client (`pip install ./clients/python`):
    python notebooks/csv_normalization.py
"""

from cellkeep import Session

ROWS = [("2024-01-31", "Åsa", 1234.5), ("2024-02-01", "Bo", -7.25), ("2024-12-24", 'C "Cy" D', 0.0)]


def comma() -> bytes:
    lines = ["date,name,amount"]
    lines += [f'{date},"{name.replace(chr(34), chr(34) * 2)}",{amount}' for date, name, amount in ROWS]
    return ("\n".join(lines) + "\n").encode()


def german() -> bytes:
    lines = ["date;name;amount"]
    for date, name, amount in ROWS:
        year, month, day = date.split("-")
        number = f"{amount:,.2f}".replace(",", "_").replace(".", ",").replace("_", ".")
        lines.append(f'{day}.{month}.{year};"{name.replace(chr(34), chr(34) * 2)}";{number}')
    return ("\r\n".join(lines) + "\r\n").encode("latin-1")


def tabbed() -> bytes:
    lines = ["Date \t Name\tAMOUNT"]
    lines += [f"{date.replace('-', '/')}\t {name} \t{amount}" for date, name, amount in ROWS]
    return b"\xef\xbb\xbf" + "\n".join(lines).encode()


def piped() -> bytes:
    lines = ["date|name|amount", ""]
    lines += [f"{date}|{name}|{amount:.3f}" for date, name, amount in ROWS]
    return "\n".join([*lines, ""]).encode("utf-16")


FILES = {"comma.csv": comma(), "german.csv": german(), "tabbed.csv": tabbed(), "piped.csv": piped()}

DRAFTS = {
    "first": '''
import pandas as pd

def normalize(path):
    frame = pd.read_csv(path)
    frame["date"] = pd.to_datetime(frame["date"]).dt.strftime("%Y-%m-%d")
    return frame
''',
    "second": '''
import csv, io
import pandas as pd

def decode(raw):
    if raw[:2] in (b"\\xff\\xfe", b"\\xfe\\xff"):
        return raw.decode("utf-16")
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError:
        return raw.decode("latin-1")

def number(text):
    text = text.strip()
    if "," in text:
        text = text.replace(".", "").replace(",", ".")
    return float(text)

def date(text):
    text = text.strip().replace("/", "-")
    return "-".join(reversed(text.split("."))) if "." in text else text

def normalize(path):
    text = decode(open(path, "rb").read())
    head = text.splitlines()[0]
    mark = max(",;\\t|", key=head.count)
    quoting = csv.QUOTE_NONE if mark in "\\t|" else csv.QUOTE_MINIMAL
    lines = io.StringIO(text, newline="")
    rows = [row for row in csv.reader(lines, delimiter=mark, quoting=quoting) if row]
    frame = pd.DataFrame(rows[1:], columns=[name.strip().lower() for name in rows[0]])
    frame["date"] = frame["date"].map(date)
    frame["name"] = frame["name"].str.strip()
    frame["amount"] = frame["amount"].map(number)
    return frame
''',
}


def main() -> dict[str, int]:
    """How many of the files each draft brings into the one form."""
    right = {}
    with Session(files=FILES, metadata={"task": "normalize"}) as session:
        for name, draft in DRAFTS.items():
            session.run(draft, reasoning=f"the {name} draft", check=True)
            right[name] = 0
            for path in FILES:
                tried = session.run(
                    f"normalize({path!r}).to_csv('normal-{path}', index=False, lineterminator='\\n')"
                )
                if not tried.ok:
                    assert tried.error is not None
                    print(f"{name} {path}: {tried.error.name}: {tried.error.message[:60]}")
                    continue
                same = session.read(f"normal-{path}") == session.read("normal-comma.csv")
                print(f"{name} {path}: {'the same' if same else 'different'}")
                right[name] += same
        print(session.read_text("normal-comma.csv"), end="")
    return right


if __name__ == "__main__":
    assert main() == {"first": 1, "second": 4}
