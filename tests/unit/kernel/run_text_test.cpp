// SPDX-License-Identifier: Apache-2.0
//
// When the text of a run that waits to be joined is shown to front ends.
#include "tests/unit/kernel/run_fixture.hpp"

#include <csignal>
#include <functional>

namespace cellkeep::session {
namespace {

using protocol::Channel;
using protocol::Message;
using test::answer;
using test::Names;
using test::RunFixture;

/// A client's request whose first lines wait to be joined.
struct PrintingRun : RunFixture {
    PrintingRun() {
        say_busy(request);
        (void)front.take();
        print(request, "0\n");
        print(request, "1\n");
    }
    const Message request = begin();
};

TEST_CASE("text that was printed is shown before the idle of its run", "[session][run][joining]") {
    PrintingRun run;
    CHECK(run.front.take().empty());
    SECTION("what comes out of the pipes behind it") {
        run.kernel().piped = "what C code printed";
        run.say_idle(run.request);
        CHECK(run.front.take() == Names{"0\n1\n", "what C code printed", "idle"});
    }
    SECTION("nothing behind it") {
        run.say_idle(run.request);
        CHECK(run.front.take() == Names{"0\n1\n", "idle"});
    }
}

TEST_CASE("text is shown before an error, and before the reply", "[session][run][joining]") {
    PrintingRun run;
    SECTION("an error") {
        run.show_error(run.request);
        CHECK(run.front.take() == Names{"0\n1\n", "error"});
    }
    SECTION("a reply") {
        run.reply(run.request);
        CHECK(run.client->types() == Names{"execute_reply"});
        CHECK(run.front.take() == Names{"0\n1\n"});
    }
    run.say_idle(run.request);
    CHECK(run.front.take() == Names{"idle"});
}

TEST_CASE("text is shown before the question that follows it", "[session][run][joining]") {
    PrintingRun run;
    run.ask_input(run.request);
    CHECK(run.client->types() == Names{"input_request"});
    CHECK(run.front.take() == Names{"0\n1\n"});
}

TEST_CASE("an interrupt shows the text before it", "[session][run][joining]") {
    PrintingRun run;
    CHECK(run.run.interrupt().has_value());
    CHECK(run.kernel().signals == std::vector<int>{SIGINT});
    CHECK(run.front.take() == Names{"0\n1\n"});
    run.print(run.request, "last words");
    CHECK(run.front.take().empty());
    run.say_idle(run.request);
    CHECK(run.front.take() == Names{"last words", "idle"});
}

TEST_CASE("an interrupt of an idle kernel shows what a thread printed", "[session][run][joining]") {
    PrintingRun run;
    run.say_idle(run.request);
    (void)run.front.take();
    run.print(run.request, "late");
    CHECK(run.front.take().empty());
    CHECK(run.run.interrupt().has_value());
    CHECK(run.front.take() == Names{"late"});
    CHECK(run.kernel().signals.empty());
}

TEST_CASE("a death shows the text before the client is answered", "[session][run][joining]") {
    PrintingRun run;
    run.kernel().left = {
        answer(run.request, Channel::kIopub, "stream", {{"name", "stdout"}, {"text", "2\n"}})};
    SECTION("by itself") {
        run.die();
        const Names seen = run.front.take();
        REQUIRE(seen.size() >= 3);
        CHECK((seen[0] == "0\n1\n2\n" && seen[1] == "error" && seen[2] == "idle"));
    }
    SECTION("that a client asked for, which is no news") {
        run.process.begin_restart();
        run.die();
        const Names seen = run.front.take();
        REQUIRE(seen.size() >= 2);
        CHECK((seen[0] == "0\n1\n2\n" && seen[1] == "idle"));
    }
    CHECK(run.client->types() == Names{"execute_reply"});
}

TEST_CASE("the text of one run is not joined with that of the next", "[session][run][joining]") {
    PrintingRun run;
    run.say_idle(run.request);
    const Message next = run.begin();
    run.say_busy(next);
    run.print(next, "2\n");
    run.print(run.request, "late");  // of a thread that the first one has left
    run.print(next, "3\n");
    run.say_idle(next);
    CHECK(run.front.take() == Names{"0\n1\n", "idle", "busy", "2\n", "late", "3\n", "idle"});
}

}  // namespace
}  // namespace cellkeep::session
