// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/egress/connection/request_record.hpp"

#include <utility>

namespace cellkeep::egress {

void RequestRecord::begin() {
    fields_ = EgressRecord();
    open_ = true;
}

void RequestRecord::go_on(EgressRecord fields, std::chrono::steady_clock::time_point began_at) {
    fields_ = std::move(fields);
    began_at_ = began_at;
    open_ = true;
}

void RequestRecord::finish(Reason reason) {
    if (!std::exchange(open_, false)) {
        return;
    }
    fields_.session = owner_.session_id();
    fields_.reason = reason;
    fields_.duration = std::chrono::duration_cast<std::chrono::milliseconds>(
        std::chrono::steady_clock::now() - began_at_);
    owner_.record(fields_);
}

}  // namespace cellkeep::egress
