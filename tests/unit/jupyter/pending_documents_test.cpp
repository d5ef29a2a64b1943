// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/jupyter/rest/pending_documents.hpp"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <catch2/catch.hpp>

#include <exception>
#include <optional>

namespace cellkeep::jupyter::test {
namespace {

using Key = PendingDocuments::Key;

/// Counts up when the document is free.
void wait_for(boost::asio::io_context& io, PendingDocuments& pending, const Key& key, int& woken) {
    boost::asio::co_spawn(io, pending.wait_until_free(key), [&woken](std::exception_ptr thrown) {
        REQUIRE_FALSE(thrown);
        ++woken;
    });
    io.restart();
    (void)io.poll();
}

TEST_CASE("a document that is not held is free at once", "[rest][pending]") {
    boost::asio::io_context io;
    PendingDocuments pending(io);
    int woken = 0;
    wait_for(io, pending, {"alice", "a.ipynb"}, woken);
    CHECK(woken == 1);
    CHECK(pending.size() == 0);
}

TEST_CASE("a held document wakes all that wait when its place goes", "[rest][pending]") {
    boost::asio::io_context io;
    PendingDocuments pending(io);
    int woken = 0;
    {
        const PendingDocuments::Place place = pending.take({"alice", "a.ipynb"});
        CHECK(pending.size() == 1);
        wait_for(io, pending, {"alice", "a.ipynb"}, woken);
        wait_for(io, pending, {"alice", "a.ipynb"}, woken);
        CHECK(woken == 0);
        wait_for(io, pending, {"bob", "a.ipynb"}, woken);
        wait_for(io, pending, {"alice", "b.ipynb"}, woken);
        CHECK(woken == 2);
    }
    CHECK(pending.size() == 0);
    CHECK(woken == 2);
    io.restart();
    (void)io.poll();
    CHECK(woken == 4);
}

TEST_CASE("a waiter that wakes and finds the document held again waits again", "[rest][pending]") {
    boost::asio::io_context io;
    PendingDocuments pending(io);
    const Key key{"alice", "a.ipynb"};
    int woken = 0;
    {
        const PendingDocuments::Place first = pending.take(key);
        wait_for(io, pending, key, woken);
    }
    {
        const PendingDocuments::Place second = pending.take(key);
        io.restart();
        (void)io.poll();
        CHECK(woken == 0);
    }
    io.restart();
    (void)io.poll();
    CHECK(woken == 1);
}

TEST_CASE("a place may outlive the documents that gave it", "[rest][pending]") {
    boost::asio::io_context io;
    auto pending = std::make_optional<PendingDocuments>(io);
    int woken = 0;
    {
        const PendingDocuments::Place place = pending->take({"alice", "a.ipynb"});
        wait_for(io, *pending, {"alice", "a.ipynb"}, woken);
        pending.reset();
    }
    io.restart();
    (void)io.poll();
    CHECK(woken == 1);
}

}  // namespace
}  // namespace cellkeep::jupyter::test
