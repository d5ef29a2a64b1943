# SPDX-License-Identifier: Apache-2.0
import pytest
from driver_process import DriverProcess

LIMITS = {"CELLKEEP_MEMORY_BYTES": str(512 << 20), "CELLKEEP_CPU_CORES": "1"}
MADE = """
SELECT 'DROP TABLE ' || format('"{}"."{}"."{}"', database_name, schema_name, table_name) FROM duckdb_tables()
UNION ALL SELECT format('DROP SEQUENCE "{}"', sequence_name) FROM duckdb_sequences()
UNION ALL SELECT format('RESET VARIABLE "{}"', name) FROM duckdb_variables()
"""


@pytest.fixture
def make(tmp_path):
    """make(NAME=value): a driver whose directory is tmp_path."""
    made = []

    def start(**env):
        made.append(DriverProcess(tmp_path, HOME=str(tmp_path), **env))
        return made[-1]

    yield start
    for driver in made:
        assert driver.close() == 0


@pytest.fixture
def own_sql(make):
    """For what is about the process: its signals, its threads, its directory."""
    return make(**LIMITS)


@pytest.fixture(scope="module")
def drivers():
    """The one that cases share, if there is one: to start it takes a third of a second of a processor."""
    shared = []
    yield shared
    for driver in shared:
        assert driver.close() == 0


@pytest.fixture
def sql(drivers, tmp_path, request):
    """A driver in tmp_path without any table: that of the case before, unless the case failed."""
    driver = drivers.pop() if drivers else DriverProcess(tmp_path, HOME=str(tmp_path), **LIMITS)
    failed = request.session.testsfailed
    try:
        moved = driver.ask("adopt", env={"HOME": str(tmp_path)}, directory=str(tmp_path))
        assert moved["status"] == "ok"
        yield driver
        if request.session.testsfailed == failed:
            for (drop,) in driver.rows(MADE):
                driver.said(drop)
            assert driver.rows("SELECT name FROM (SHOW ALL TABLES)") == []
            drivers.append(driver)
    finally:
        if driver not in drivers:
            driver.kill()
