// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/output/output_fanout.hpp"

#include <algorithm>
#include <utility>

namespace cellkeep::session {

void OutputFanout::unsubscribe(OutputObserver* observer) {
    std::erase(observers_, observer);
}

bool OutputFanout::show(protocol::Message message) {
    const OutputEntry entry = journal_.append(std::move(message));
    for (OutputObserver* observer : std::vector(observers_)) {
        // An earlier one may have let go of it.
        if (std::find(observers_.begin(), observers_.end(), observer) != observers_.end()) {
            observer->on_output(entry);
        }
    }
    return is_congested();
}

bool OutputFanout::is_congested() const {
    return std::any_of(observers_.begin(), observers_.end(), [](const OutputObserver* observer) {
        return observer->congested();
    });
}

}  // namespace cellkeep::session
