// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/execution/output_list.hpp"

#include "protocol/limits.hpp"

#include <utility>

namespace cellkeep::session {

namespace {

/// What an output costs beside its bytes: its message's headers, its place here.
constexpr std::uint64_t kOutputCost = 1024;
constexpr std::string_view kTextNote = R"(\n… output limit reached, the rest is left out …\n)";

}  // namespace

void OutputList::add_stream(
    std::string_view name, std::string_view inside, std::size_t text_bytes) {
    if (inside.empty() || text_bytes_ > text_bytes_max_ ||
        outputs_.size() >= limits::kAnswerOutputsMax) {
        return;
    }
    text_bytes_ += text_bytes;
    const std::string_view shown = text_bytes_ > text_bytes_max_ ? kTextNote : inside;
    auto* last = outputs_.empty() ? nullptr : std::get_if<StreamOutput>(&outputs_.back());
    if (last != nullptr && last->name == name) {
        last->inside += shown;
    } else {
        outputs_.emplace_back(StreamOutput{std::string(name), std::string(shown)});
    }
}

bool OutputList::take_room(std::uint64_t bytes) {
    if (bytes_ + bytes > limits::kAnswerDisplayBytesMax ||
        outputs_.size() >= limits::kAnswerOutputsMax) {
        ++left_out_;
        return false;
    }
    bytes_ += bytes;
    return true;
}

bool OutputList::add_display(MimeBundle bundle, const std::string& display_id, std::size_t bytes) {
    if (!take_room(bytes)) {
        return false;
    }
    if (!display_id.empty()) {
        Group& group = groups_[display_id];
        group.loose.push_back(outputs_.size());
        group.loose_bytes += bytes;
    }
    outputs_.emplace_back(DisplayOutput{std::make_shared<MimeBundle>(std::move(bundle))});
    return true;
}

bool OutputList::add_result(ResultOutput result, std::size_t bytes) {
    if (!take_room(bytes)) {
        return false;
    }
    outputs_.emplace_back(std::move(result));
    return true;
}

bool OutputList::add_error(ErrorOutput error, std::size_t bytes) {
    if (!take_room(bytes)) {
        return false;
    }
    outputs_.emplace_back(std::move(error));
    return true;
}

void OutputList::update_display(
    const std::string& display_id, MimeBundle bundle, std::size_t bytes) {
    const auto found = groups_.find(display_id);
    if (found == groups_.end()) {
        return;
    }
    Group& group = found->second;
    const std::size_t count = group.shared_count + group.loose.size();
    const std::uint64_t before =
        std::uint64_t{group.shared_count} * group.shared_bytes + group.loose_bytes;
    if (bytes_ - before + std::uint64_t{count} * bytes > limits::kAnswerDisplayBytesMax) {
        ++left_out_;
        return;
    }
    bytes_ = bytes_ - before + std::uint64_t{count} * bytes;
    if (!group.shared) {
        group.shared = std::make_shared<MimeBundle>();
    }
    *group.shared = std::move(bundle);
    // Each display is taken into the group once, so an update costs the same however many there
    // are.
    for (const std::size_t place : group.loose) {
        std::get<DisplayOutput>(outputs_[place]).bundle = group.shared;
    }
    group.loose.clear();
    group.loose_bytes = 0;
    group.shared_count = count;
    group.shared_bytes = bytes;
}

void OutputList::clear() {
    outputs_.clear();
    groups_.clear();
    bytes_ = 0;
    text_bytes_ = 0;
}

OutputList::Passed OutputList::pass_on() {
    std::unordered_map<const MimeBundle*, std::vector<std::size_t>> places;
    for (std::size_t at = 0; at < outputs_.size(); ++at) {
        if (const auto* display = std::get_if<DisplayOutput>(&outputs_[at])) {
            places[display->bundle.get()].push_back(at);
        }
    }
    Passed passed;
    for (const auto& [id, group] : groups_) {
        Passed::Group written{id, {}, group.shared_count, group.shared_bytes, group.loose_bytes};
        if (group.shared) {
            written.places = places[group.shared.get()];
        }
        written.places.insert(written.places.end(), group.loose.begin(), group.loose.end());
        passed.groups.push_back(std::move(written));
    }
    passed.outputs = std::move(outputs_);
    passed.bytes = bytes_;
    passed.text_bytes = text_bytes_;
    passed.left_out = left_out_;
    clear();
    return passed;
}

Status OutputList::go_on(Passed passed) {
    outputs_ = std::move(passed.outputs);
    bytes_ = passed.bytes;
    text_bytes_ = passed.text_bytes;
    left_out_ = passed.left_out;
    for (Passed::Group& one : passed.groups) {
        Group group;
        group.shared_count = one.shared_count;
        group.shared_bytes = one.shared_bytes;
        group.loose_bytes = one.loose_bytes;
        for (std::size_t at = 0; at < one.places.size(); ++at) {
            const std::size_t place = one.places[at];
            auto* const display =
                place < outputs_.size() ? std::get_if<DisplayOutput>(&outputs_[place]) : nullptr;
            if (display == nullptr) {
                return Error(ErrorCode::kProtocol, "passed outputs: a display is not there");
            }
            if (at >= one.shared_count) {
                group.loose.push_back(place);
            } else if (group.shared) {
                display->bundle = group.shared;
            } else {
                group.shared = display->bundle;
            }
        }
        if (one.shared_count > one.places.size()) {
            return Error(ErrorCode::kProtocol, "passed outputs: a display is missing");
        }
        groups_.insert_or_assign(std::move(one.display_id), std::move(group));
    }
    return ok();
}

std::uint64_t OutputList::retained_bytes() const {
    return bytes_ + 2 * text_bytes_ + kOutputCost * outputs_.size();
}

}  // namespace cellkeep::session
