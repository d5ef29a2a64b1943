# SPDX-License-Identifier: Apache-2.0
# The interpreter of Python sessions is Debian's own, not whatever comes first on PATH: 3.11 on Debian 12, 3.13 on
# Debian 13.
file(REAL_PATH /usr/bin/python3 system_python)
set(Python_EXECUTABLE ${system_python} CACHE FILEPATH "The base interpreter of Python sessions")
find_package(Python 3.11 REQUIRED COMPONENTS Interpreter)
set(CELLKEEP_PYTHON_VERSION ${Python_VERSION_MAJOR}.${Python_VERSION_MINOR})
