// SPDX-License-Identifier: Apache-2.0
//
// The bash kernel, as a process: one shell, cell after cell.
#include "tests/integration/kernel/bash_kernel.hpp"

#include <catch2/catch.hpp>

#include <fstream>
#include <string>

using Catch::Matchers::Contains;
using cellkeep::protocol::Channel;
using cellkeep::test::Bash;
using cellkeep::test::count;
using cellkeep::test::error_place;
using cellkeep::test::first;
using cellkeep::test::Messages;
using cellkeep::test::only;
using nlohmann::json;

TEST_CASE("a shell keeps its variables, functions, options and aliases", "[kernel][bash]") {
    Bash bash;
    CHECK(bash.run("x=5; export E=e; f() { echo f $x; }; shopt -s nullglob; alias ll='echo LL'; "
                   "set -- a b")
              .empty());
    CHECK(bash.reply()["status"] == "ok");
    CHECK(
        bash.run("mkdir -p /tmp; cd /tmp && f; sh -c 'echo $E'; shopt -q nullglob && echo on; ll; "
                 "echo $2") == "f 5\ne\non\nLL\nb\n");
    CHECK(bash.run("pwd") == "/tmp\n");
    CHECK(bash.run("sleep 1000 & echo $!; job=$!").size() > 1);
    CHECK(bash.run("jobs -r | wc -l; kill $job; wait $job; echo $?") == "1\n143\n");
}

TEST_CASE("constructs of many lines, here-documents and arrays", "[kernel][bash]") {
    Bash bash;
    CHECK(
        bash.run(
            "for i in 1 2; do\n  echo $i\ndone\ncat <<E\nx $((1+1))\nE\na=(p q)\necho ${a[1]}") ==
        "1\n2\nx 2\nq\n");
    CHECK(bash.run("cat <<'E'\n$not 'expanded\nE") == "$not 'expanded\n");
    CHECK(bash.run("echo \"späm €\" '!x' \\\n  more") == "späm € !x more\n");
    CHECK(bash.run("# only a comment").empty());
    CHECK(bash.run("").empty());
    CHECK(bash.reply()["status"] == "ok");
}

TEST_CASE("stdout and stderr are apart", "[kernel][bash]") {
    Bash bash;
    (void)bash.execute("echo out; echo err >&2");
    CHECK(bash.read_stdout() == "out\n");
    CHECK(bash.read_stderr() == "err\n");
}

TEST_CASE("a cell ends as its last command does", "[kernel][bash]") {
    Bash bash;
    (void)bash.run("true");
    CHECK(bash.exit_code() == 0);
    const auto [code, exit_code, line] = GENERATE(table<std::string, int, json>(
        {{"false", 1, 1},
         {"echo\n(exit 42)", 42, 2},
         {"true\n\nno_such_command", 127, 3},
         {"exit 3\necho never", 3, nullptr},
         {"f() { exit 300; }; f", 44, nullptr},
         {"kill -TERM $BASHPID & wait $!", 143, 1},
         {"return 5", 5, nullptr},
         {"cd /no/such/directory", 1, 1},
         {"echo x | grep y", 1, 1}}));
    CAPTURE(code);
    (void)bash.run(code);
    CHECK(bash.reply()["status"] == "error");
    CHECK(bash.reply()["ename"] == "ExitStatus");
    CHECK(bash.reply()["evalue"] == "exit code " + std::to_string(exit_code));
    CHECK(bash.exit_code() == exit_code);
    CHECK(error_place(bash.last)["kind"] == "exit_status");
    CHECK(error_place(bash.last)["line"] == line);
    CHECK(bash.run("echo alive") == "alive\n");
    CHECK(bash.exit_code() == 0);
}

TEST_CASE("what is not bash is refused, with its line, before anything runs", "[kernel][bash]") {
    Bash bash;
    const auto [code, line] = GENERATE(table<std::string, int>(
        {{"echo 1\nif true\nfi", 3},
         {"done", 1},
         {"echo 1\necho )", 2},
         {"echo 1\necho 'open", 2},
         {"case x in\n", 1},
         {"f() {", 1},
         {"echo 1; ;; echo 2", 1}}));
    CAPTURE(code);
    CHECK(bash.run(code).empty());
    CHECK(bash.reply()["ename"] == "SyntaxError");
    CHECK(error_place(bash.last)["kind"] == "syntax");
    CHECK(error_place(bash.last)["line"] == line);
    CHECK(bash.exit_code() == 2);
}

TEST_CASE("a command that reads its input asks the client, if stdin is allowed", "[kernel][bash]") {
    Bash bash;
    const auto answer = [&](const std::string& id, std::vector<std::string> lines) {
        for (const std::string& line : lines) {
            (void)bash.receive_until("input_request");
            bash.send(Channel::kStdin, "input_reply", {{"value", line}});
        }
        (void)id;
    };
    std::string id = bash.start("read a b; echo got $b-$a", {{"allow_stdin", true}});
    answer(id, {"one two"});
    (void)bash.receive_until_idle(id);
    CHECK(bash.read_stdout() == "got two-one\n");
    id = bash.start("cat | tr a-z A-Z", {{"allow_stdin", true}});
    answer(id, {"first", "second"});
    (void)bash.receive_until("input_request");
    bash.send(Channel::kStdin, "input_reply", {{"value", ""}, {"eof", true}});
    (void)bash.receive_until_idle(id);
    CHECK(bash.read_stdout() == "FIRST\nSECOND\n");
    CHECK(bash.run("read a; echo $?; cat; wc -c") == "1\n0\n");
    CHECK(count(bash.last, "input_request") == 0);
}

TEST_CASE("an answer that the cell does not read to its end blocks nothing", "[kernel][bash]") {
    Bash bash;
    const std::string long_line(200'000, 'x');
    std::string id = bash.start("head -c 5 >/dev/null; echo done", {{"allow_stdin", true}});
    (void)bash.receive_until("input_request");
    bash.send(Channel::kStdin, "input_reply", {{"value", long_line}});
    CHECK(only(bash.receive_until_idle(id), "execute_reply")["status"] == "ok");
    CHECK(bash.read_stdout() == "done\n");
    // One that is read arrives whole.
    id = bash.start("read -r a; echo ${#a}", {{"allow_stdin", true}});
    (void)bash.receive_until("input_request");
    bash.send(Channel::kStdin, "input_reply", {{"value", long_line}});
    (void)bash.receive_until_idle(id);
    CHECK(bash.read_stdout() == "200000\n");
}

TEST_CASE("questions about code are answered with any options set", "[kernel][bash]") {
    Bash bash;
    (void)bash.run("my_function() { :; }; mkdir -p dir; touch dir/afile");
    const std::string options =
        GENERATE(as<std::string>(), "set -e", "set -u", "set -C", "set -euo pipefail", "set -x");
    CAPTURE(options);
    (void)bash.run(options);
    (void)bash.read_stderr();
    const auto matches = [&](const std::string& code) {
        const json request{{"code", code}, {"cursor_pos", code.size()}};
        return only(bash.request("complete_request", request), "complete_reply")["matches"];
    };
    CHECK(matches("my_fun") == json({"my_function"}));
    CHECK(matches("cat dir/a") == json({"dir/afile"}));
    CHECK(matches("no_such_thing_at_all") == json::array());
    const json unknown{{"code", "no_such"}, {"cursor_pos", 2}, {"detail_level", 0}};
    CHECK(only(bash.request("inspect_request", unknown), "inspect_reply")["found"] == false);
    CHECK(bash.run("echo alive; [[ $- == *[euCx]* ]] && echo set") == "alive\nset\n");
    CHECK_THAT(bash.read_stderr(), !Contains("cannot overwrite"));
}

TEST_CASE("the code before the cursor may have any length", "[kernel][bash]") {
    Bash bash;
    std::string escapes = "sed 's";
    for (int index = 0; index < 60; ++index) {
        escapes += "\\/a";
    }
    for (const std::string& before : {escapes + "' x; ech", std::string(300'000, 'a') + " ; ech"}) {
        const json request{{"code", before}, {"cursor_pos", before.size()}};
        const json reply = only(bash.request("complete_request", request), "complete_reply");
        CHECK(reply["cursor_start"] == before.size() - 3);
        CHECK_THAT(reply["matches"].dump(), Contains("\"echo\""));
    }
}

TEST_CASE("display shows files and the output of commands", "[kernel][bash]") {
    Bash bash;
    const auto shown = [&](const std::string& code) {
        return only(bash.execute(code), "display_data")["data"];
    };
    CHECK(shown("printf x > a.png; display a.png; rm a.png")["image/png"] == "eA==");
    CHECK(shown("echo '<b>' | display text/html")["text/html"] == "<b>\n");
    CHECK(shown("echo '{\"a\": [1]}' > a.json; display a.json")["application/json"]["a"][0] == 1);
    CHECK(shown("printf '\\377text' > a.txt; display a.txt")["text/plain"] == "\uFFFDtext");
    for (const std::string refused :
         {"display /no/such.png",
          "display .",
          "echo '{' | display application/json",
          "printf '[%.0s' {1..9000} | display application/json"}) {
        CAPTURE(refused);
        const Messages answer = bash.execute(refused);
        CHECK(count(answer, "display_data") == 0);
    }
    CHECK(bash.run("echo alive") == "alive\n");
}

TEST_CASE("completion of commands, variables, files and functions", "[kernel][bash]") {
    Bash bash;
    (void)bash.run(
        "my_function() { :; }; my_variable=1; mkdir -p dir/sub; touch 'dir/a file' dir/afile");
    const auto matches = [&](const std::string& code) {
        const json reply =
            only(bash.request("complete_request", {{"code", code}}), "complete_reply");
        return reply["matches"];
    };
    CHECK(matches("my_fu") == json::array({"my_function"}));
    CHECK(matches("echo $my_va") == json::array({"my_variable"}));
    CHECK(matches("echo ${my_va") == json::array({"my_variable"}));
    CHECK(matches("ls dir/a") == json::array({"dir/a\\ file", "dir/afile"}));
    CHECK(matches("cd dir/") == json::array({"dir/sub/"}));
    CHECK(matches("true; my_fu") == json::array({"my_function"}));
    CHECK(matches("ls no_such_file").empty());
    CHECK(matches("").size() <= 1000);
}

TEST_CASE("inspection of builtins, functions, variables and programs", "[kernel][bash]") {
    Bash bash;
    (void)bash.run("my_function() { echo inside; }; my_variable=value");
    const auto text = [&](const std::string& code) {
        const json reply = only(bash.request("inspect_request", {{"code", code}}), "inspect_reply");
        return reply["found"] == true ? reply["data"]["text/plain"].get<std::string>() : "";
    };
    CHECK_THAT(text("my_function"), Contains("echo inside"));
    CHECK_THAT(text("echo $my_variable"), Contains("value"));
    CHECK_THAT(text("cd"), Contains("Change the shell working directory"));
    CHECK_THAT(text("sort"), Contains("bin/sort"));
    CHECK(text("no_such_thing").empty());
    CHECK(text("$(rm -rf x)").empty());
    CHECK(text("   ").empty());
}

TEST_CASE("whether a cell is complete, as bash says", "[kernel][bash]") {
    Bash bash;
    const auto [code, status] = GENERATE(table<std::string, std::string>(
        {{"echo a", "complete"},
         {"for x in 1; do echo; done", "complete"},
         {"for x in 1; do", "incomplete"},
         {"echo 'a", "incomplete"},
         {"cat <<E\nx", "incomplete"},
         {"echo \\", "incomplete"},
         {"echo |", "incomplete"},
         {"fi", "invalid"},
         {"echo )", "invalid"},
         {"a() b", "invalid"}}));
    CAPTURE(code);
    CHECK(
        only(
            bash.request("is_complete_request", {{"code", code}}), "is_complete_reply")["status"] ==
        status);
}

TEST_CASE("the shell of a spare becomes a session's", "[kernel][bash]") {
    Bash bash;
    bash.send(
        Channel::kControl,
        "cellkeep_adopt_request",
        {{"env", {{"WHO", "it's me"}}}, {"working_directory", "/usr"}});
    CHECK(
        only(bash.receive_until("cellkeep_adopt_reply"), "cellkeep_adopt_reply")["status"] == "ok");
    CHECK(bash.run("sh -c 'echo $WHO'; pwd") == "it's me\n/usr\n");
}

TEST_CASE("a shell that ends leaves nothing behind", "[kernel][bash]") {
    Bash bash;
    CHECK(bash.run("ls -d $TMPDIR/.cellkeep-bash-*").size() > 1);
    CHECK(bash.run("ls -l /proc/self/fd | wc -l").size() < 4);
    const std::string temporary = bash.run("echo $TMPDIR");
    bash.close_link();
    CHECK(bash.wait_for_end() == 0);
    CHECK_FALSE(
        std::ifstream(temporary.substr(0, temporary.size() - 1) + "/.cellkeep-bash-").good());
}
