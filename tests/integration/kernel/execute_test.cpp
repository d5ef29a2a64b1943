// SPDX-License-Identifier: Apache-2.0
#include "tests/support/kernel_client.hpp"

#include <catch2/catch.hpp>

using cellkeep::test::content;
using cellkeep::test::count;
using cellkeep::test::KernelClient;
using cellkeep::test::Messages;
using cellkeep::test::only;
using cellkeep::test::text_of;
using nlohmann::json;

TEST_CASE("a cell's value arrives as its result and its reply is ok", "[kernel][execute]") {
    KernelClient kernel;
    const Messages answer = kernel.execute("1 + 1");
    CHECK(only(answer, "execute_result")["data"]["text/plain"] == "2");
    const json reply = only(answer, "execute_reply");
    CHECK(reply["status"] == "ok");
    CHECK(reply["execution_count"] == 1);
    CHECK(reply["payload"] == json::array());
    CHECK(reply["user_expressions"] == json::object());
}

TEST_CASE("variables live on between cells", "[kernel][execute]") {
    KernelClient kernel;
    (void)kernel.execute("x = 20\ndef double(n): return 2 * n");
    CHECK(only(kernel.execute("double(x) + 2"), "execute_result")["data"]["text/plain"] == "42");
}

TEST_CASE("a trailing semicolon keeps the value back", "[kernel][execute]") {
    KernelClient kernel;
    CHECK(count(kernel.execute("1 + 1;"), "execute_result") == 0);
    CHECK(count(kernel.execute("2;", {{"store_history", false}}), "execute_result") == 0);
}

TEST_CASE(
    "user expressions are evaluated after the code, each with its own error", "[kernel][execute]") {
    KernelClient kernel;
    const json reply = only(
        kernel.execute("a = 3", {{"user_expressions", {{"good", "a * 2"}, {"bad", "1 / 0"}}}}),
        "execute_reply");
    CHECK(reply["user_expressions"]["good"]["data"]["text/plain"] == "6");
    CHECK(reply["user_expressions"]["bad"]["ename"] == "ZeroDivisionError");
}

TEST_CASE("a silent cell publishes no input, no result and no error", "[kernel][execute]") {
    KernelClient kernel;
    const Messages answer = kernel.execute("1\n1 / 0", {{"silent", true}});
    CHECK(count(answer, "execute_input") == 0);
    CHECK(count(answer, "execute_result") == 0);
    CHECK(count(answer, "error") == 0);
    CHECK(only(answer, "execute_reply")["ename"] == "ZeroDivisionError");
}

TEST_CASE("line and cell magics run", "[kernel][magic]") {
    KernelClient kernel;
    CHECK(
        text_of(kernel.execute("%timeit -n1 -r1 pass"), "stdout").find("per loop") !=
        std::string::npos);
    const Messages timed = kernel.execute("%%time\nprint('inside')");
    CHECK(text_of(timed, "stdout").find("inside") == 0);
    CHECK(text_of(timed, "stdout").find("Wall time") != std::string::npos);
}

TEST_CASE("IPython's own syntax is seen wherever it may stand", "[kernel][magic]") {
    KernelClient kernel;
    const auto printed = [&](std::string_view code) {
        return text_of(kernel.execute(code), "stdout");
    };
    CHECK(printed("if True:\n    !echo inside") == "inside\n");
    CHECK(printed("names = !echo list\nprint(names)") == "['list']\n");
    CHECK(
        printed("kind = %alias_magic -l t timeit\nprint(kind)").find("None") != std::string::npos);
    CHECK(printed("def twice(*all): print(all)\n") == "");
    CHECK(printed("x = 1\n,twice a b") == "('a', 'b')\n");
    CHECK(printed("x = 1\n;twice a b") == "('a b',)\n");
    CHECK(printed("x = 1\n/twice 1 2") == "(1, 2)\n");
    CHECK(only(kernel.execute("x = 1\nlen?"), "execute_reply")["payload"].size() == 1);
    // A transformer that the user adds works without any of these characters.
    (void)kernel.execute(
        "from IPython.core.inputtransformer2 import TokenTransformBase\n"
        "class Shout(TokenTransformBase):\n"
        "    @classmethod\n"
        "    def find(cls, lines):\n"
        "        for line in lines:\n"
        "            if line and line[0].string == 'SHOUT':\n"
        "                return cls(line[0].start)\n"
        "    def transform(self, lines):\n"
        "        at = self.start_line\n"
        "        return [*lines[:at], \"print('shouted')\\n\", *lines[at + 1:]]\n"
        "get_ipython().input_transformer_manager.token_transformers.append(Shout)");
    CHECK(printed("SHOUT") == "shouted\n");
}

TEST_CASE("a shell command's output arrives as the cell's, in order", "[kernel][magic]") {
    KernelClient kernel;
    const Messages answer = kernel.execute("print('a')\n!echo b; echo e >&2\nprint('c')");
    CHECK(text_of(answer, "stdout") == "a\nb\nc\n");
    CHECK(text_of(answer, "stderr") == "e\n");
    CHECK(
        text_of(kernel.execute("files = !echo one; echo two\nprint(files)"), "stdout") ==
        "['one', 'two']\n");
    CHECK(text_of(kernel.execute("!exit 3\nprint(_exit_code)"), "stdout") == "3\n");
}

TEST_CASE("a script cell runs and leaves no thread behind", "[kernel][magic]") {
    KernelClient kernel;
    CHECK(text_of(kernel.execute("%%bash\necho from bash"), "stdout") == "from bash\n");
    CHECK(
        text_of(kernel.execute("import threading\nprint(threading.active_count())"), "stdout") ==
        "1\n");
}

TEST_CASE("a question mark asks for a page, set_next_input for a cell", "[kernel][payload]") {
    KernelClient kernel;
    const json page = only(kernel.execute("len?"), "execute_reply")["payload"];
    REQUIRE(page.size() == 1);
    CHECK(page[0]["source"] == "page");
    CHECK(page[0]["data"].contains("text/plain"));
    const json next =
        only(kernel.execute("get_ipython().set_next_input('y = 1')"), "execute_reply")["payload"];
    CHECK(next[0] == json{{"source", "set_next_input"}, {"text", "y = 1"}, {"replace", false}});
    CHECK(only(kernel.execute("1"), "execute_reply")["payload"] == json::array());
}

TEST_CASE("exit asks the client and leaves the kernel alive", "[kernel][execute]") {
    KernelClient kernel;
    for (const char* code : {"exit", "quit()"}) {
        const json reply = only(kernel.execute(code), "execute_reply");
        CHECK(reply["status"] == "ok");
        CHECK(reply["payload"][0]["source"] == "ask_exit");
    }
    const json reply = only(kernel.execute("import sys; sys.exit(3)"), "execute_reply");
    CHECK(reply["ename"] == "SystemExit");
    CHECK(only(kernel.execute("1"), "execute_result")["data"]["text/plain"] == "1");
}

TEST_CASE("a thousand cells build on one another", "[kernel][execute]") {
    KernelClient kernel;
    (void)kernel.execute("total = 0");
    for (int index = 0; index < 1000; ++index) {
        (void)kernel.execute("total += 1");
    }
    const Messages answer = kernel.execute("total");
    CHECK(only(answer, "execute_result")["data"]["text/plain"] == "1000");
    CHECK(only(answer, "execute_reply")["execution_count"] == 1002);
}

TEST_CASE("sys.executable starts the environment's Python", "[kernel][execute]") {
    KernelClient kernel;
    const Messages answer = kernel.execute(
        "import subprocess, sys, numpy\n"
        "subprocess.run([sys.executable, '-c', 'import sys, numpy; print(sys.prefix)'],"
        " capture_output=True, text=True).stdout.strip() == sys.prefix");
    CHECK(only(answer, "execute_result")["data"]["text/plain"] == "True");
}

TEST_CASE("multiprocessing works by fork and by spawn", "[kernel][execute]") {
    KernelClient kernel;
    const Messages answer = kernel.execute(
        "import multiprocessing as mp\n"
        "for how in ('fork', 'spawn'):\n"
        "    with mp.get_context(how).Pool(2) as pool:\n"
        "        print(how, pool.map(abs, [-1, -2]))");
    CHECK(text_of(answer, "stdout") == "fork [1, 2]\nspawn [1, 2]\n");
}

TEST_CASE(
    "modules of the working directory import; the session's variables are seen",
    "[kernel][execute]") {
    KernelClient kernel({.variables = {"SESSION_COLOUR=blue"}});
    const Messages answer = kernel.execute(
        "open('mine.py', 'w').write('value = 7')\nimport mine, os\n"
        "print(mine.value, os.environ['SESSION_COLOUR'], os.listdir('.'))");
    CHECK(text_of(answer, "stdout") == "7 blue ['mine.py']\n");
}
