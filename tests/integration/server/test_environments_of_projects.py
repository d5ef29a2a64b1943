# SPDX-License-Identifier: Apache-2.0
"""Named environments of what projects ask for, from the public index."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from harness import Server, Session, wait_until
from wheels import Environments

PUBLIC_INDEX = ""

# Requirements, a cell that needs them, and what it shows.
PROJECTS = {
    "tables": (
        ["pandas==2.2.3", "openpyxl==3.1.5", "XlsxWriter==3.2.0", "tabulate==0.9.0"],
        "import pandas, tabulate; pandas.DataFrame({'a': [1, 2]}).to_excel('t.xlsx', index=False)\n"
        "pandas.__version__, int(pandas.read_excel('t.xlsx').a.sum())",
        "('2.2.3', 3)",
    ),
    "geo": (
        ["geopandas==1.0.1", "shapely==2.0.6", "pyproj==3.7.0"],
        "import geopandas, shapely\n"
        "frame = geopandas.GeoSeries([shapely.Point(13.4, 52.5)], crs=4326).to_crs(3857)\n"
        "round(frame.x[0] / 1000), round(frame.y[0] / 1000)",
        "(1492, 6891)",
    ),
    "words": (
        ["nltk==3.9.1", "rapidfuzz==3.10.1", "regex==2024.11.6"],
        "import nltk.stem, rapidfuzz\n"
        "nltk.stem.PorterStemmer().stem('running'), rapidfuzz.fuzz.ratio('sandbox', 'sandboxes') > 80",
        "('run', True)",
    ),
    "pages": (
        ["beautifulsoup4==4.12.3", "lxml==5.3.0", "parsel==1.9.1", "requests==2.32.3"],
        "import bs4, parsel; page = '<ul><li>a<li>b</ul>'\n"
        "[li.text for li in bs4.BeautifulSoup(page, 'lxml')('li')], parsel.Selector(page).css('li::text').getall()",
        "(['a', 'b'], ['a', 'b'])",
    ),
    "charts": (
        ["plotly==5.24.1", "altair==5.5.0", "seaborn==0.13.2"],
        "import altair, plotly.graph_objects as go, seaborn\n"
        "len(go.Figure(go.Bar(y=[1, 2])).data), 'mark' in altair.Chart(altair.Data(values=[])).mark_bar().to_dict()",
        "(1, True)",
    ),
    "science": (
        ["scipy==1.14.1", "sympy==1.13.3", "pandas==2.2.3", "statsmodels==0.14.4"],
        "import scipy.optimize, sympy, statsmodels.api; x = sympy.Symbol('x')\n"
        "round(scipy.optimize.brentq(lambda n: n * n - 2, 0, 2), 6), sympy.integrate(2 * x, (x, 0, 3))",
        "(1.414214, 9)",
    ),
}
# Requirements, and what the refusal says.
REFUSED = {
    "source": (["docopt==0.6.2"], "has no usable wheels"),
    "conflict": (["requests==2.32.3", "urllib3==1.20"], "unsatisfiable"),
    "missing": (["cellkeep-has-no-package-of-this-name"], "not found"),
    "kernels": (["ipython==7.34.0"], "unsatisfiable"),
}


@pytest.fixture(scope="module")
def environments(tmp_path_factory: pytest.TempPathFactory) -> Environments:
    return Environments(tmp_path_factory.mktemp("projects"), PUBLIC_INDEX)


@pytest.fixture(scope="module")
def server(environments: Environments) -> Iterator[Server]:
    running = Server("--log-format", "text")
    running.environment = environments.variables
    with running:
        yield running


@pytest.mark.timeout(600)
@pytest.mark.parametrize("name", PROJECTS)
def test_a_projects_requirements_are_an_environment(
    server: Server, environments: Environments, name: str
) -> None:
    requirements, code, value = PROJECTS[name]
    made = environments.create(name, *requirements)
    assert made.returncode == 0, made.stderr
    shown = json.loads(environments.run("show", name, "--json").stdout)
    for requirement in requirements:
        package, version = requirement.lower().split("==")
        assert shown["packages"][package] == version
    wait_until(lambda: f"python3-{name}" in server.get("/api/kernelspecs").json()["kernelspecs"], 60, "it is offered")
    answer = server.post("/v1/sessions", {"environment": name})
    assert answer.status_code == 201, answer.text
    session = Session(server, answer.json())
    assert session.value(code) == value
    assert session.delete() == 204


@pytest.mark.timeout(600)
@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_an_environment_says_why_and_leaves_nothing(
    environments: Environments, name: str
) -> None:
    requirements, reason = REFUSED[name]
    before = sorted(path.name for path in environments.store.rglob("*"))
    made = environments.create(name, *requirements)
    assert made.returncode != 0
    assert reason in made.stderr, made.stderr
    assert requirements[0].split("==")[0] in made.stderr
    assert sorted(path.name for path in environments.store.rglob("*")) == before
