// SPDX-License-Identifier: Apache-2.0
//
// The documents whose session is being made. Two windows may open one document at once: the second
// waits for the first, and gets its session. io_context thread only.
#pragma once

#include "protocol/support/completion.hpp"

#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>

#include <cstddef>
#include <map>
#include <memory>
#include <string>
#include <utility>

namespace cellkeep::jupyter {

class PendingDocuments {
 public:
    struct Key {
        std::string owner;
        std::string path;
        auto operator<=>(const Key&) const = default;  // NOLINT(modernize-use-nullptr)
    };

 private:
    using Done = Completion<bool>;
    using Map = std::map<Key, std::shared_ptr<Done>>;

 public:
    /// Holds a document until it goes, and then wakes what waits for it. May outlive the
    /// PendingDocuments: a request may outlive the listener.
    class Place {
     public:
        Place(std::shared_ptr<Map> pending, Key key, boost::asio::io_context& io);
        Place(const Place&) = delete;
        Place& operator=(const Place&) = delete;
        ~Place();

     private:
        std::shared_ptr<Map> pending_;
        Key key_;
    };

    explicit PendingDocuments(boost::asio::io_context& io)
        : io_(io), pending_(std::make_shared<Map>()) {}

    /// Returns when nothing holds the document. The caller must take it before it waits again.
    boost::asio::awaitable<void> wait_until_free(Key key) const;
    /// The document must be free.
    Place take(Key key) { return {pending_, std::move(key), io_}; }
    std::size_t size() const { return pending_->size(); }

 private:
    boost::asio::io_context& io_;
    std::shared_ptr<Map> pending_;
};

}  // namespace cellkeep::jupyter
