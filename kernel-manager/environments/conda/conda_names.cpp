// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/environments/conda/conda_names.hpp"

#include "kernel-manager/environments/distributions.hpp"

#include <algorithm>
#include <array>
#include <string>

namespace cellkeep::environments {

namespace {

// What is left out, and has to stay out: conda's libraries and programs with a namesake at PyPI
// (graphviz, redis, brotli, igraph, tzdata, gdal …), and packages that choose a processor
// (pytorch-gpu, tensorflow-gpu, cupy). Both lists are in order.
// clang-format off
constexpr auto kSameNames = std::to_array<std::string_view>({
    "absl-py", "accelerate", "affine", "aiobotocore", "aiofiles", "aiohttp", "aiosignal",
    "alabaster", "albumentations", "alembic", "altair", "annotated-types", "anyio", "appdirs",
    "argon2-cffi", "argon2-cffi-bindings", "arrow", "asgiref", "astropy", "asttokens", "async-lru",
    "async-timeout", "asyncpg", "attrs", "autograd", "babel", "backcall", "backoff", "bcrypt",
    "beautifulsoup4", "biopython", "black", "bleach", "blinker", "bokeh", "boto3", "botocore",
    "bottleneck", "branca", "cachetools", "cairosvg", "cartopy", "catboost", "cattrs", "certifi",
    "cffi", "cftime", "chardet", "charset-normalizer", "click", "click-plugins", "cligj",
    "cloudpickle", "cmdstanpy", "colorama", "colorcet", "comm", "contextily", "contourpy",
    "coverage", "cryptography", "cvxpy", "cycler", "cython", "cytoolz", "dash", "dask",
    "databricks-sdk", "datasets", "datashader", "debugpy", "decorator", "deepdiff", "defusedxml",
    "dill", "diskcache", "distributed", "django", "djangorestframework", "dnspython", "docutils",
    "duckdb", "einops", "elasticsearch", "emcee", "et-xmlfile", "evaluate", "exceptiongroup",
    "executing", "faker", "fastapi", "fastjsonschema", "fastparquet", "filelock", "fiona",
    "flake8", "flask", "flask-cors", "folium", "fonttools", "frozenlist", "fsspec", "ftfy",
    "gcsfs", "gensim", "geopandas", "geopy", "gitdb", "gitpython", "google-api-core",
    "google-auth", "google-cloud-bigquery", "google-cloud-storage", "googleapis-common-protos",
    "gpytorch", "greenlet", "grpcio", "gunicorn", "gymnasium", "h11", "h2", "h5netcdf", "h5py",
    "holoviews", "httpcore", "httptools", "httpx", "huggingface-hub", "humanize", "hvplot",
    "hypothesis", "idna", "imageio", "imagesize", "imbalanced-learn", "importlib-metadata",
    "importlib-resources", "iniconfig", "intake", "ipykernel", "ipython", "ipywidgets", "isodate",
    "isort", "itsdangerous", "jax", "jaxlib", "jedi", "jinja2", "jmespath", "joblib", "json5",
    "jsonpointer", "jsonschema", "jsonschema-specifications", "jupyter", "jupyter-client",
    "jupyter-console", "jupyter-core", "jupyter-events", "jupyter-lsp", "jupyter-server",
    "jupyter-server-terminals", "jupyterlab", "jupyterlab-pygments", "jupyterlab-server",
    "jupyterlab-widgets", "jupytext", "keras", "kiwisolver", "kornia", "langchain", "librosa",
    "lifelines", "lightgbm", "lightning", "linkify-it-py", "llvmlite", "lmfit", "locket", "loguru",
    "lxml", "lz4", "mako", "mapclassify", "markdown", "markdown-it-py", "markupsafe",
    "marshmallow", "matplotlib", "matplotlib-inline", "mccabe", "mdit-py-plugins", "mdurl",
    "memory-profiler", "missingno", "mistune", "mlflow", "mne", "more-itertools", "mpmath", "msal",
    "multidict", "multiprocess", "mypy", "mypy-extensions", "narwhals", "nbclient", "nbconvert",
    "nbformat", "nest-asyncio", "netcdf4", "networkx", "nibabel", "nilearn", "nltk", "notebook",
    "notebook-shim", "numba", "numcodecs", "numexpr", "numpy", "numpydoc", "numpyro", "oauthlib",
    "odfpy", "omegaconf", "onnx", "onnxruntime", "openai", "openpyxl", "opt-einsum", "optuna",
    "orjson", "osmnx", "packaging", "pandas", "pandocfilters", "panel", "param", "paramiko",
    "parso", "partd", "passlib", "pathspec", "patsy", "peewee", "peft", "pendulum", "pexpect",
    "pickleshare", "pillow", "pint", "platformdirs", "plotly", "plotnine", "pluggy", "polars",
    "pooch", "pre-commit", "prettytable", "prometheus-client", "prompt-toolkit", "prophet",
    "protobuf", "psutil", "psycopg", "ptyprocess", "pure-eval", "pyarrow", "pyasn1",
    "pyasn1-modules", "pycodestyle", "pycparser", "pydantic", "pydantic-core", "pydantic-settings",
    "pydeck", "pydot", "pyflakes", "pygments", "pyjwt", "pylint", "pymc", "pymongo", "pymysql",
    "pynacl", "pyodbc", "pyogrio", "pyopenssl", "pyparsing", "pypdf", "pyproj", "pyshp", "pysocks",
    "pyspark", "pytest", "pytest-asyncio", "pytest-cov", "pytest-mock", "pytest-xdist",
    "python-dateutil", "python-docx", "python-dotenv", "python-json-logger", "python-multipart",
    "python-pptx", "python-slugify", "pytorch-lightning", "pytz", "pyvista", "pyviz-comms",
    "pywavelets", "pyyaml", "pyzmq", "rapidfuzz", "rasterio", "rasterstats", "rdflib", "rdkit",
    "referencing", "regex", "requests", "requests-oauthlib", "responses", "rfc3339-validator",
    "rich", "rioxarray", "rpds-py", "rsa", "ruff", "s3fs", "s3transfer", "sacrebleu",
    "safetensors", "scikit-image", "scikit-learn", "scikit-optimize", "scipy", "scrapy", "seaborn",
    "selenium", "send2trash", "sentence-transformers", "sentencepiece", "setuptools", "shap",
    "shapely", "simpleitk", "six", "smart-open", "smmap", "sniffio", "snowballstemmer",
    "sortedcontainers", "soupsieve", "spacy", "sphinx", "sqlalchemy", "sqlglot", "sqlmodel",
    "sqlparse", "stack-data", "starlette", "statsmodels", "streamlit", "sympy", "tabulate",
    "tblib", "tenacity", "tensorboard", "tensorflow", "termcolor", "terminado", "textblob",
    "threadpoolctl", "tifffile", "tiktoken", "timm", "tinycss2", "tokenizers", "toml", "tomli",
    "tomlkit", "toolz", "torchaudio", "torchmetrics", "torchvision", "tornado", "tqdm",
    "traitlets", "transformers", "trimesh", "trio", "typer", "typing-extensions",
    "typing-inspection", "tzlocal", "ujson", "umap-learn", "uncertainties", "unidecode", "urllib3",
    "uvicorn", "uvloop", "virtualenv", "wandb", "watchdog", "wcwidth", "webencodings",
    "websocket-client", "websockets", "werkzeug", "wheel", "widgetsnbextension", "wordcloud",
    "wrapt", "xarray", "xgboost", "xlrd", "xlsxwriter", "xyzservices", "yarl", "yfinance", "zarr",
    "zict", "zipp", "zstandard",
});
// clang-format on

constexpr auto kOtherNames = std::to_array<NamePair>(
    {{"brotli-python", "brotli"},
     {"dask-core", "dask"},
     {"docker-py", "docker"},
     {"matplotlib-base", "matplotlib"},
     {"mne-base", "mne"},
     {"msgpack-python", "msgpack"},
     {"opencv", "opencv-python-headless"},
     {"psycopg2", "psycopg2-binary"},
     {"py-opencv", "opencv-python-headless"},
     {"py-xgboost", "xgboost"},
     {"pyarrow-core", "pyarrow"},
     {"pytables", "tables"},
     {"python-build", "build"},
     {"python-duckdb", "duckdb"},
     {"python-graphviz", "graphviz"},
     {"python-igraph", "igraph"},
     {"python-kubernetes", "kubernetes"},
     {"python-lmdb", "lmdb"},
     {"python-tzdata", "tzdata"},
     {"python-xxhash", "xxhash"},
     {"pytorch", "torch"},
     {"redis-py", "redis"},
     {"seaborn-base", "seaborn"},
     {"tensorflow-base", "tensorflow"}});

}  // namespace

std::optional<std::string_view> pypi_name(std::string_view conda_name) {
    const std::string name = normalised(conda_name);
    const auto* const same = std::lower_bound(kSameNames.begin(), kSameNames.end(), name);
    if (same != kSameNames.end() && *same == name) {
        return *same;
    }
    const auto* const other =
        std::find_if(kOtherNames.begin(), kOtherNames.end(), [&name](const NamePair& one) {
            return one.first == name;
        });
    if (other != kOtherNames.end()) {
        return other->second;
    }
    return std::nullopt;
}

std::span<const std::string_view> same_names() {
    return kSameNames;
}

std::span<const NamePair> other_names() {
    return kOtherNames;
}

}  // namespace cellkeep::environments
