# SPDX-License-Identifier: Apache-2.0
# Tests are written for Catch2 version 2, which Debian 12 has. Debian 13 has version 3: there, tests/support/catch3 has
# the header of version 2 made of those of version 3.
find_package(Catch2 REQUIRED)
include(Catch)

# cellkeep_discover_tests(TARGET TEST_PREFIX ... PROPERTIES ...): a test of CTest's for each test case.
function(cellkeep_discover_tests target)
    # Version 3 would else take its own code for a skipped test; version 2 does not know the word and ignores it.
    catch_discover_tests(${target} SKIP_IS_FAILURE ${ARGN})
endfunction()
