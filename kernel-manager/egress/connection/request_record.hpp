// SPDX-License-Identifier: Apache-2.0
//
// The record of one request, from its first byte until it is over: written once, whatever ends it.
// io_context thread only.
#pragma once

#include "kernel-manager/egress/session_proxy.hpp"

#include <chrono>

namespace cellkeep::egress {

class RequestRecord {
 public:
    /// The owner must outlive it.
    explicit RequestRecord(SessionProxy& owner) : owner_(owner) {}

    /// A new record in place of the one before.
    void begin();
    /// The duration counts from now on.
    void start_clock() { began_at_ = std::chrono::steady_clock::now(); }
    /// Nothing was asked: there is no record.
    void drop() { open_ = false; }
    /// Gives the record to the owner. Does nothing if it has been given or dropped.
    void finish(Reason reason);
    EgressRecord& fields() { return fields_; }
    std::chrono::steady_clock::time_point began_at() const { return began_at_; }
    /// In place of begin() and start_clock(), of a request that another program has begun.
    void go_on(EgressRecord fields, std::chrono::steady_clock::time_point began_at);

 private:
    SessionProxy& owner_;
    EgressRecord fields_;
    bool open_ = false;
    std::chrono::steady_clock::time_point began_at_;
};

}  // namespace cellkeep::egress
