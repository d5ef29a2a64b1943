# SPDX-License-Identifier: Apache-2.0
"""Jupyter's kernel test suite (jupyter_kernel_test) for every language of ours but Python.

A group that a language has nothing for is left out, and why is said beside it. CTest runs each class as a
test of its own.
"""

import attached


class BashKernel(attached.KernelOfSession):
    """No results: what a command prints is its value."""

    session_language = language_name = "bash"
    file_extension = ".sh"
    code_hello_world = "echo hello, world"
    code_stderr = "echo test >&2"
    completion_samples = [
        {"text": "ech", "matches": {"echo"}},
        {"text": "nothing_begins_like_this", "matches": set()},
    ]
    complete_code_samples = ["", "echo 1", "if true; then echo 1; fi", "cat <<EOF\ntext\nEOF\n"]
    incomplete_code_samples = ["if true; then", "echo 'hello", "f() {", "echo \\"]
    invalid_code_samples = ["done", ")", "for x in 1 2; done"]
    code_generate_error = "false"
    code_display_data = [{"code": "echo '<b>x</b>' | display text/html", "mime": "text/html"}]
    code_inspect_sample = "cd"


class JavaScriptKernel(attached.KernelOfSession):
    session_language = language_name = "javascript"
    file_extension = ".js"
    code_hello_world = "console.log('hello, world')"
    code_stderr = "console.error('test')"
    completion_samples = [
        {"text": "JSON.strin", "matches": {"stringify"}},
        {"text": "nothing_begins_like_this", "matches": set()},
    ]
    complete_code_samples = ["", "1", "function f() { return 1 }", "await 1"]
    incomplete_code_samples = ["function f() {", "f(", "`hello", "[1, 2,"]
    invalid_code_samples = [")", "let x = = 1", "import = 7q"]
    code_generate_error = "throw new Error('test')"
    code_execute_result = [
        {"code": "1+2+3", "result": "6"},
        {"code": "[1, 2, 3].map(n => n * n)", "result": "[ 1, 4, 9 ]"},
    ]
    code_display_data = [
        {"code": "display.html('<b>x</b>')", "mime": "text/html"},
        {"code": "display.svg('<svg></svg>')", "mime": "image/svg+xml"},
        {"code": "display.json({ a: 1 })", "mime": "application/json"},
    ]
    code_history_pattern = "1?2*"
    supported_history_operations = ("tail", "range", "search")
    code_inspect_sample = "JSON.stringify"
    code_clear_output = "display.clear()"


class TypeScriptKernel(JavaScriptKernel):
    session_language = language_name = "typescript"
    file_extension = ".ts"
    complete_code_samples = ["", "1", "function f(): number { return 1 }", "let n: number = 1"]
    incomplete_code_samples = ["function f(): number {", "interface A {", "`hello"]
    invalid_code_samples = [")", "let x: number = = 1"]


class SqlKernel(attached.KernelOfSession):
    """No streams: a query writes to none."""

    session_language = language_name = "sql"
    file_extension = ".sql"
    completion_samples = [
        {"text": "SELEC", "matches": {"SELECT"}},
        {"text": "nothing_begins_like_this", "matches": set()},
    ]
    complete_code_samples = ["", "SELECT 1", "SELECT 1;", "SELECT 1; SELECT 2"]
    incomplete_code_samples = ["SELECT 'hello", "SELECT (1", "SELECT 1 FROM"]
    invalid_code_samples = ["SELEKT 1", "SELECT 1 FRUM x y z"]
    code_generate_error = "SELECT nothing"
    code_execute_result = [{"code": "SELECT 1+2+3"}, {"code": "SELECT 42 AS n"}]
    code_display_data = [{"code": "SELECT 1; SELECT 2", "mime": "text/html"}]
    code_history_pattern = "SELECT 1?2*"
    supported_history_operations = ("tail", "range", "search")
    code_inspect_sample = "range"


class CppKernel(attached.KernelOfSession):
    session_language = language_name = "cpp"
    file_extension = ".cpp"
    code_hello_world = '#include <iostream>\nstd::cout << "hello, world" << std::endl;'
    code_stderr = '#include <iostream>\nstd::cerr << "test" << std::endl;'
    completion_samples = [{"text": "int number_of_cells; number_of_c", "matches": {"number_of_cells"}}]
    complete_code_samples = ["", "1", "int f() { return 1; }"]
    incomplete_code_samples = ["int f() {", "f(", "/* hello"]
    invalid_code_samples = ["}", "f(]", '"hello']
    code_generate_error = "throw 1;"
    code_execute_result = [{"code": "1+2+3", "result": "6"}, {"code": "6*7", "result": "42"}]
    code_display_data = [
        {"code": 'cellkeep::html("<b>x</b>");', "mime": "text/html"},
        {"code": 'cellkeep::svg("<svg></svg>");', "mime": "image/svg+xml"},
    ]
    code_inspect_sample = "std::string"
    code_clear_output = "cellkeep::clear_output();"
    code_history_pattern = "1?2*"
    supported_history_operations = ("tail", "range", "search")


# The suite's base class has nothing to be tested with.
del attached
