// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/http/message/text_reading.hpp"

#include "protocol/support/work_thread.hpp"

#include <boost/asio/co_spawn.hpp>
#include <catch2/catch.hpp>

#include <cstddef>
#include <exception>
#include <string>
#include <thread>
#include <vector>

namespace cellkeep::http::test {
namespace {

namespace asio = boost::asio;

struct Seen {
    std::size_t bytes = 0;
    std::thread::id thread;
};

/// Reads each text in turn, as a connection does.
struct TextHarness {
    asio::io_context io{1};
    WorkThread thread;

    std::vector<Seen> read(const std::vector<std::size_t>& sizes, WorkThread* with) {
        std::vector<Seen> seen;
        asio::co_spawn(io, read_all(sizes, with, seen), [](std::exception_ptr thrown) {
            REQUIRE_FALSE(thrown);
        });
        io.restart();
        (void)io.run();
        return seen;
    }
    static asio::awaitable<void> read_all(
        std::vector<std::size_t> sizes, WorkThread* with, std::vector<Seen>& seen) {
        for (const std::size_t size : sizes) {
            TextReader<Seen> look = [](const std::string& text) {
                return Seen{text.size(), std::this_thread::get_id()};
            };
            std::string text(size, 'x');
            seen.push_back(co_await read_text<Seen>(with, std::move(text), std::move(look)));
        }
    }
};

TEST_CASE("kTextReadAtOnceBytesMax: a longer text is read elsewhere", "[http][limits]") {
    TextHarness harness;
    const std::size_t most = kTextReadAtOnceBytesMax;
    const auto seen = harness.read({0, most, most + 1, 1}, &harness.thread);
    REQUIRE(seen.size() == 4);
    const auto here = std::this_thread::get_id();
    CHECK(seen[0].thread == here);
    CHECK(seen[1].thread == here);
    CHECK(seen[2].thread != here);
    CHECK(seen[3].thread == here);
    CHECK(seen[1].bytes == most);
    CHECK(seen[2].bytes == most + 1);
}

TEST_CASE("a text in pieces is read as a whole", "[http]") {
    TextHarness harness;
    const auto read_it = [&](std::vector<std::string> pieces, std::string& found) {
        asio::co_spawn(
            harness.io,
            [&, pieces = std::move(pieces)]() mutable -> asio::awaitable<void> {
                TextReader<std::string> same = [](std::string text) { return text; };
                found = co_await read_text<std::string>(
                    &harness.thread, std::move(pieces), std::move(same));
            },
            [](std::exception_ptr thrown) { REQUIRE_FALSE(thrown); });
        harness.io.restart();
        (void)harness.io.run();
    };
    std::string found = "before";
    read_it({}, found);
    CHECK(found.empty());
    read_it({"one"}, found);
    CHECK(found == "one");
    read_it({"one", "", "two", "six"}, found);
    CHECK(found == "onetwosix");
    // Together too long to be read at once.
    const std::string half(kTextReadAtOnceBytesMax, 'h');
    read_it({half, "-", half}, found);
    CHECK(found == half + "-" + half);
}

TEST_CASE("without a thread every text is read at once", "[http]") {
    TextHarness harness;
    const auto seen = harness.read({kTextReadAtOnceBytesMax + 1}, nullptr);
    REQUIRE(seen.size() == 1);
    CHECK(seen[0].thread == std::this_thread::get_id());
}

TEST_CASE("a body that was read is not in the request any more", "[http]") {
    TextHarness harness;
    for (const std::size_t size : {std::size_t{3}, kTextReadAtOnceBytesMax + 1}) {
        Request request;
        request.body = std::string(size, 'x');
        request.work_thread = &harness.thread;
        std::size_t read = 0;
        const auto read_it = [&]() -> asio::awaitable<void> {
            TextReader<std::size_t> count = [](const std::string& text) { return text.size(); };
            read = co_await read_body<std::size_t>(request, std::move(count));
        };
        asio::co_spawn(
            harness.io, read_it, [](std::exception_ptr thrown) { REQUIRE_FALSE(thrown); });
        harness.io.restart();
        (void)harness.io.run();
        CHECK(read == size);
        CHECK(request.body.empty());
    }
}

}  // namespace
}  // namespace cellkeep::http::test
