// SPDX-License-Identifier: Apache-2.0
//
// Text of unknown length kept in bounded memory: whole while it is short; its head and its tail
// once it is longer, with the whole saved to a file in the session's workspace as it arrives. Every
// cut is between UTF-8 characters. Not thread-safe.
#pragma once

#include "kernel-manager/execution/execution.hpp"
#include "sandbox/workspace/workspace.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace cellkeep::session {

class BoundedText {
 public:
    /// bytes_max: what text() holds at most, beside the line that says what is missing.
    /// save_path: the file for the whole text (relative to the workspace).
    BoundedText(std::uint64_t bytes_max, std::string save_path);

    /// workspace may be null: then a long text is cut and not saved.
    void append(std::string_view text, const sandbox::Workspace* workspace);
    void clear();

    struct Outcome {
        std::string text;
        std::optional<Truncation> truncation;
    };
    /// Puts the saved file in place. Call once, at the end.
    Outcome finish();

    std::uint64_t total() const { return total_; }

    /// Nothing was cut: what there is can be passed on as it is.
    bool is_whole() const { return !cut_; }
    /// The text, for another program in this process, and from one. Precondition: is_whole(), and
    /// in the other program that nothing was appended.
    std::string pass_on() { return std::move(head_); }
    void go_on(std::string text) {
        total_ = text.size();
        head_ = std::move(text);
    }

 private:
    void begin_saving(const sandbox::Workspace* workspace);
    void save(std::string_view text);

    std::size_t half_max_;
    std::size_t bytes_max_;
    std::string save_path_;
    std::string head_;  // the whole text until it is longer than bytes_max_
    std::string tail_;
    std::uint64_t total_ = 0;
    bool cut_ = false;
    std::optional<sandbox::Workspace::Upload> upload_;
    std::uint64_t room_ = 0;  // what may still be saved
    std::string not_saved_;   // why the saving ended
};

}  // namespace cellkeep::session
