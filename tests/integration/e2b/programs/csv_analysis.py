# SPDX-License-Identifier: Apache-2.0
"""A program for E2B that uploads a CSV file, has code analyze it, and downloads what that made."""

import base64
import csv
import sys

from e2b_code_interpreter import Sandbox

with open("dataset.csv", "w", newline="") as out:
    rows = csv.writer(out)
    rows.writerow(["title", "year", "vote_average"])
    for number in range(1200):
        rows.writerow([f"Film, number {number}", 1990 + number % 30, round(4 + (number % 30) / 10, 1)])

sandbox = Sandbox.create(timeout=300)

with open("dataset.csv", "rb") as dataset:
    dataset_path = sandbox.files.write("dataset.csv", dataset)
print("uploaded", dataset_path.path)


def run_ai_generated_code(code: str):
    """What a program does with code that a model has written."""
    execution = sandbox.run_code(code)
    if execution.error:
        print("AI-generated code had an error.")
        print(execution.error.name)
        print(execution.error.traceback)
        sys.exit(1)
    return execution


columns = run_ai_generated_code(
    f"""
import pandas as pd
df = pd.read_csv({dataset_path.path!r})
print(df.shape)
list(df.columns)
"""
)
print("shape", columns.logs.stdout)
print("columns", columns.text)

trend = run_ai_generated_code(
    """
import matplotlib.pyplot as plt
by_year = df.groupby("year")["vote_average"].mean().round(1).reset_index()
by_year.to_csv("/home/user/by_year.csv", index=False)
plt.plot(by_year["year"], by_year["vote_average"])
plt.xlabel("Year")
plt.ylabel("Votes")
plt.show()
by_year.head(2)
"""
)
for index, result in enumerate(trend.results):
    if result.png:
        with open(f"chart-{index}.png", "wb") as picture:
            picture.write(base64.b64decode(result.png))
        print("chart", f"chart-{index}.png")
    if result.data:
        print("data", result.data["year"], result.data["vote_average"])

content = sandbox.files.read("/home/user/by_year.csv")
with open("by_year.csv", "w") as out:
    out.write(content)
with open("by_year.csv", newline="") as downloaded:
    read = list(csv.DictReader(downloaded))
print("downloaded", len(read), read[0])
print("bytes", len(sandbox.files.read("dataset.csv", format="bytes")))
sandbox.kill()
