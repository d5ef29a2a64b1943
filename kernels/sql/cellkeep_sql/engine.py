# SPDX-License-Identifier: Apache-2.0
"""The session's database: in memory, within the session's limits, without a network."""

import math
import os
import resource

import duckdb

# What the rest of the session keeps of its memory: the driver, Arrow, files of /workspace and /tmp,
# which are memory as well.
MEMORY_SHARE = 0.5
MEMORY_LEAST = 64 << 20
MEMORY_UNKNOWN = 512 << 20
SPILL_DIRECTORY = "/tmp/.duckdb"
# A directory without extensions: DuckDB loads none and does not use the network.
NO_EXTENSIONS = "/nonexistent"


def ask(connection, query, values=()):
    """Returns all rows of the driver's own query. Unread rows would keep the connection in use."""
    return connection.execute(query, list(values)).fetchall()


def memory_limit(env):
    """How many bytes DuckDB may use of the session's memory limit."""
    known = [MEMORY_UNKNOWN]
    if (said := env.get("CELLKEEP_MEMORY_BYTES", "")).isdigit():
        known = [int(said)]
    soft, _hard = resource.getrlimit(resource.RLIMIT_DATA)
    if soft != resource.RLIM_INFINITY:
        known.append(soft)
    return max(MEMORY_LEAST, int(min(known) * MEMORY_SHARE))


def thread_count(env):
    """Threads for queries: the session's cores, rounded up, and no more than the machine has."""
    available = len(os.sched_getaffinity(0))
    try:
        cores = float(env["CELLKEEP_CPU_CORES"])
    except (KeyError, ValueError):
        return 1
    if not math.isfinite(cores):
        return available
    return max(1, min(math.ceil(cores), available))


def connect(env):
    connection = duckdb.connect(
        ":memory:",
        config={
            "memory_limit": f"{memory_limit(env)}B",
            "threads": thread_count(env),
            # For reads that wait; files here are memory.
            "async_threads": 1,
            "temp_directory": SPILL_DIRECTORY,
            "autoinstall_known_extensions": False,
            "autoload_known_extensions": False,
            "allow_community_extensions": False,
            "custom_extension_repository": NO_EXTENSIONS,
            "autoinstall_extension_repository": NO_EXTENSIONS,
            "extension_directory": NO_EXTENSIONS,
            "secret_directory": NO_EXTENSIONS,
            # Variables of this program are no tables.
            "python_enable_replacements": False,
            # Types that Arrow does not have come back unchanged (table.py).
            "arrow_lossless_conversion": True,
            "errors_as_json": True,
        },
    )
    ask(connection, "SET enable_progress_bar = false")
    set_time_zone(connection, env)
    return connection


def set_time_zone(connection, env):
    """TZ of the session; DuckDB's own default, UTC here, if it does not know that one."""
    zone = env.get("TZ", "")
    if not zone:
        return
    try:
        ask(connection, "SET GLOBAL TimeZone = ?", [zone])
    except duckdb.Error:
        ask(connection, "SET GLOBAL TimeZone = 'UTC'")
