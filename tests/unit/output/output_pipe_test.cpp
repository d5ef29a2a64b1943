// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/output/output_pipe.hpp"

#include "protocol/limits.hpp"
#include "protocol/support/syscall.hpp"

#include <boost/asio/io_context.hpp>
#include <catch2/catch.hpp>

#include <fcntl.h>

#include <string>
#include <utility>
#include <vector>

using cellkeep::make_pipe;
using cellkeep::write_all;
using cellkeep::session::incomplete_utf8_suffix;
using cellkeep::session::OutputPipe;

namespace {

struct PipeHarness {
    boost::asio::io_context io;
    cellkeep::UniqueFd writer;
    std::vector<std::string> texts;
    std::shared_ptr<OutputPipe> pipe;

    PipeHarness() {
        auto ends = make_pipe().value();
        REQUIRE(cellkeep::set_nonblocking(ends.read_end.get()).has_value());
        writer = std::move(ends.write_end);
        pipe = OutputPipe::create(io, std::move(ends.read_end), [this](std::string_view text) {
                   texts.emplace_back(text);
               }).value();
    }
    ~PipeHarness() { pipe->close(); }
    PipeHarness(const PipeHarness&) = delete;
    PipeHarness& operator=(const PipeHarness&) = delete;

    void write(std::string_view bytes) { REQUIRE(write_all(writer.get(), bytes).has_value()); }
    std::string all() const {
        std::string joined;
        for (const auto& text : texts) {
            joined += text;
        }
        return joined;
    }
};

}  // namespace

TEST_CASE("an unfinished character at the end of text is recognised", "[session][pipe]") {
    CHECK(incomplete_utf8_suffix("") == 0);
    CHECK(incomplete_utf8_suffix("abc") == 0);
    CHECK(incomplete_utf8_suffix("a\xc3") == 1);          // first of two bytes
    CHECK(incomplete_utf8_suffix("a\xc3\xa9") == 0);      // é
    CHECK(incomplete_utf8_suffix("a\xe2\x82") == 2);      // two of three bytes
    CHECK(incomplete_utf8_suffix("a\xe2\x82\xac") == 0);  // €
    CHECK(incomplete_utf8_suffix("\xf0\x9f\x98") == 3);   // three of four bytes
    CHECK(incomplete_utf8_suffix("\xf0\x9f\x98\x80") == 0);
    CHECK(incomplete_utf8_suffix("\x80\x80\x80\x80") == 0);  // never a character
    CHECK(incomplete_utf8_suffix("a\xff") == 0);
}

TEST_CASE("a character split over two writes arrives whole", "[session][pipe]") {
    PipeHarness harness;
    harness.write("a\xe2\x82");
    harness.pipe->drain();
    CHECK(harness.all() == "a");
    harness.write("\xac!");
    harness.pipe->drain();
    CHECK(harness.all() == "a€!");
}

TEST_CASE("drain hands out what is there and does not wait for more", "[session][pipe]") {
    PipeHarness harness;
    harness.pipe->drain();
    CHECK(harness.texts.empty());
    harness.write("x");
    harness.pipe->drain();
    CHECK(harness.all() == "x");
}

TEST_CASE("a character that stays unfinished is handed out at the end", "[session][pipe]") {
    PipeHarness harness;
    harness.write("a\xe2\x82");
    harness.pipe->drain();
    CHECK(harness.all() == "a");
    harness.pipe->hand_out_rest();
    CHECK(harness.all() == "a\xe2\x82");
    harness.pipe->hand_out_rest();
    CHECK(harness.texts.size() == 2);
}

TEST_CASE("another pipe goes on with the beginning of a character", "[session][pipe]") {
    PipeHarness before;
    PipeHarness after;
    before.write("a\xf0\x9f\x98");
    before.pipe->drain();
    const std::string rest(before.pipe->rest());
    CHECK(rest.size() == cellkeep::session::kUtf8RestBytesMax);
    auto end = before.pipe->pass_on();
    REQUIRE(end);
    CHECK_FALSE(before.pipe->pass_on());  // it has been
    CHECK(before.pipe->rest().empty());
    after.pipe->close();
    after.pipe = OutputPipe::create(after.io, std::move(end), [&](std::string_view text) {
                     after.texts.emplace_back(text);
                 }).value();
    after.pipe->go_on(rest);
    before.write("\x80z");
    after.pipe->drain();
    CHECK(before.all() == "a");
    CHECK(after.all() == "\xf0\x9f\x98\x80z");
}

TEST_CASE("a chunk is never larger than its bound", "[session][pipe]") {
    PipeHarness harness;
    REQUIRE(::fcntl(harness.writer.get(), F_SETPIPE_SZ, 1 << 20) >= (1 << 20));
    const std::string flood(3 * cellkeep::limits::kStreamChunkBytesMax + 1, 'x');
    harness.write(flood);
    harness.pipe->drain();
    CHECK(harness.all() == flood);
    for (const auto& text : harness.texts) {
        CHECK(text.size() <= cellkeep::limits::kStreamChunkBytesMax);
    }
}

TEST_CASE("the event loop delivers text and the end of file ends the watch", "[session][pipe]") {
    PipeHarness harness;
    harness.pipe->start();
    harness.write("late\xe2");
    harness.writer.reset();
    harness.io.run();  // returns only because nothing is waited for any more
    CHECK(harness.all() == "late\xe2");
}

TEST_CASE("a paused pipe reads nothing until it is resumed", "[session][pipe]") {
    PipeHarness harness;
    harness.pipe->pause_reading();
    harness.pipe->start();
    harness.write("held");
    harness.io.run();
    CHECK(harness.texts.empty());
    harness.pipe->resume_reading();
    harness.writer.reset();
    harness.io.restart();
    harness.io.run();
    CHECK(harness.all() == "held");
}
