# SPDX-License-Identifier: Apache-2.0
"""What projects ask for of the public index: requirements that are environments, and some that cannot be. One
whose source wants out of its sandbox is in sources.py, because no index should have it."""

from pip._internal.models.index import PyPI

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
    # Its C is compiled: it has no wheel.
    "compiled": (
        ["crcmod==1.7"],
        "import crcmod.predefined, crcmod._crcfunext\n"
        "hex(crcmod.predefined.mkCrcFun('crc-32')(b'123456789')), crcmod._crcfunext.__file__.endswith('.so')",
        "('0xcbf43926', True)",
    ),
}
# Of these, what is built from its source.
BUILT = {"compiled": "crcmod"}


def build_arguments(built: str) -> list[str]:
    """Those with which it is built; pip knows where the public index and its files are."""
    if not built:
        return []
    return ["--build-sdists", built, "--build-hosts", PyPI.file_storage_domain, "--index", PyPI.simple_url]


# Requirements, and what the refusal says.
REFUSED = {
    "source": (["docopt==0.6.2"], "has no usable wheels"),
    "conflict": (["requests==2.32.3", "urllib3==1.20"], "unsatisfiable"),
    "missing": (["cellkeep-has-no-package-of-this-name"], "not found"),
    "kernels": (["ipython==7.34.0"], "unsatisfiable"),
}
