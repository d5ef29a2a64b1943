# SPDX-License-Identifier: Apache-2.0
# Tests are written for Catch2 version 2, which Debian 12 has. Debian 13 has version 3: there, tests/support/catch3 has
# the header of version 2 made of those of version 3.
find_package(Catch2 REQUIRED)
include(Catch)

# cellkeep_discover_tests(TARGET [MAY_SKIP] [LONG] TEST_PREFIX ... PROPERTIES ...): a test of CTest's for each test case.
#
# With sanitizers it is one test for the whole program: to start a sanitized program takes longer than most cases do.
# MAY_SKIP says that a case may end its program with the code of a skipped test. Its cases stay apart then. LONG is for
# the programs that take longest: they begin first, so that none of them runs alone at the end.
function(cellkeep_discover_tests target)
    cmake_parse_arguments(PARSE_ARGV 1 arg "MAY_SKIP;LONG" TEST_PREFIX PROPERTIES)
    if(CELLKEEP_SANITIZE AND NOT arg_MAY_SKIP AND NOT arg_UNPARSED_ARGUMENTS)
        add_test(NAME ${arg_TEST_PREFIX}${target} COMMAND ${target})
        set_tests_properties(${arg_TEST_PREFIX}${target} PROPERTIES ${arg_PROPERTIES})
        if(arg_LONG)
            set_tests_properties(${arg_TEST_PREFIX}${target} PROPERTIES COST 100)
        endif()
        return()
    endif()
    list(REMOVE_ITEM ARGN MAY_SKIP LONG)
    # Version 3 would else take its own code for a skipped test; version 2 does not know the word and ignores it.
    catch_discover_tests(${target} SKIP_IS_FAILURE ${ARGN})
endfunction()
