# SPDX-License-Identifier: Apache-2.0
"""A program for E2B that draws: a picture to keep, and the numbers of interactive charts."""

import base64

from e2b_code_interpreter import Sandbox

BARS = """
import matplotlib.pyplot as plt

cities = ["Oslo", "Rome", "Lima"]
rain = [763, 799, 16]

plt.figure(figsize=(8, 5))
plt.bar(cities, rain, label="Rain in a year", color="teal")
plt.xlabel("City")
plt.ylabel("Rain (mm)")
plt.title("Rain by city")
plt.tight_layout()
plt.show()
"""

LINES = """
import datetime
import matplotlib.pyplot as plt
import numpy as np

days = [datetime.date(2026, 1, 1) + datetime.timedelta(days=n) for n in range(4)]
plt.figure()
plt.plot(days, np.array([1, 4, 9, 16]), label="visits")
plt.plot(days, np.array([1, 2, 3, 4]), label="sales")
plt.legend()
plt.title("A short week")
plt.show()
"""

MANY = """
import matplotlib.pyplot as plt
import numpy as np

figure, (left, right) = plt.subplots(1, 2)
left.pie([30, 70], labels=["no", "yes"])
left.set_title("Answers")
right.scatter(np.arange(10), np.arange(10) ** 2)
right.set_title("Spread")
figure.suptitle("Two in one")
plt.show()
"""

with Sandbox.create() as sandbox:
    execution = sandbox.run_code(BARS)
    first = execution.results[0]
    if first.png:
        with open("chart.png", "wb") as picture:
            picture.write(base64.b64decode(first.png))
        print("saved chart.png")
    chart = first.chart
    print("type", chart.type.value)
    print("title", chart.title)
    print("axes", chart.x_label, "|", chart.y_label, "|", chart.y_unit)
    for element in chart.elements:
        print("bar", element.label, f"{element.value:g}", element.group)

    chart = sandbox.run_code(LINES).results[0].chart
    print("type", chart.type.value, chart.x_scale.value)
    for element in chart.elements:
        print("line", element.label, [float(y) for _, y in element.points])

    chart = sandbox.run_code(MANY).results[0].chart
    print("type", chart.type.value)
    print("parts", [(part.type.value, part.title) for part in chart.elements])
