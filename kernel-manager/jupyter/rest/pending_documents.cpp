// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/jupyter/rest/pending_documents.hpp"

#include "protocol/support/result.hpp"

namespace cellkeep::jupyter {

PendingDocuments::Place::Place(std::shared_ptr<Map> pending, Key key, boost::asio::io_context& io)
    : pending_(std::move(pending)), key_(std::move(key)) {
    const bool taken = pending_->emplace(key_, std::make_shared<Done>(io)).second;
    CELLKEEP_CHECK(taken);
}

PendingDocuments::Place::~Place() {
    auto node = pending_->extract(key_);
    node.mapped()->set(true);
}

boost::asio::awaitable<void> PendingDocuments::wait_until_free(Key key) const {
    const auto pending = pending_;
    for (auto held = pending->find(key); held != pending->end(); held = pending->find(key)) {
        const auto first = held->second;
        (void)co_await Done::wait(first);  // Ignored: the value only wakes.
    }
}

}  // namespace cellkeep::jupyter
