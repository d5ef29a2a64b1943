// SPDX-License-Identifier: Apache-2.0
//
// The outputs of one running execution, in order and in bounded memory: at most
// limits::kAnswerOutputsMax of them and limits::kAnswerDisplayBytesMax of what they keep; the rest
// is left out and counted. A display is found by its display_id at the same cost however many there
// are. Not thread-safe.
#pragma once

#include "kernel-manager/execution/notebook_output.hpp"
#include "protocol/support/result.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace cellkeep::session {

class OutputList {
 public:
    /// text_bytes_max: of stream text; past it the list says once that the rest is left out.
    explicit OutputList(std::uint64_t text_bytes_max) : text_bytes_max_(text_bytes_max) {}

    /// inside: the text as it stands between the quotes of a JSON string, text_bytes long once it
    /// is read.
    void add_stream(std::string_view name, std::string_view inside, std::size_t text_bytes);
    /// Each of these takes room for that number of bytes, or leaves the output out and returns
    /// false. display_id: may be empty.
    bool add_display(MimeBundle bundle, const std::string& display_id, std::size_t bytes);
    bool add_result(ResultOutput result, std::size_t bytes);
    bool add_error(ErrorOutput error, std::size_t bytes);
    /// Replaces all displays of this id; what they had gives its room back, and each replacement
    /// takes some, for each is written out in an answer. Nothing if there is no such display.
    void update_display(const std::string& display_id, MimeBundle bundle, std::size_t bytes);
    void clear();

    std::size_t size() const { return outputs_.size(); }
    std::uint64_t left_out() const { return left_out_; }
    /// About what keeping them costs.
    std::uint64_t retained_bytes() const;
    std::vector<NotebookOutput> take() { return std::move(outputs_); }

    /// For another program in this process, and from one.
    struct Passed {
        /// The displays of one id, by their places, of which the first shared_count are one.
        struct Group {
            std::string display_id;
            std::vector<std::size_t> places;
            std::size_t shared_count = 0;
            std::size_t shared_bytes = 0;
            std::uint64_t loose_bytes = 0;
        };
        std::vector<NotebookOutput> outputs;
        std::vector<Group> groups;
        std::uint64_t bytes = 0;
        std::uint64_t text_bytes = 0;
        std::uint64_t left_out = 0;
    };
    Passed pass_on();
    /// kProtocol if the groups are not those of the outputs. Before anything is added.
    Status go_on(Passed passed);

 private:
    /// The displays of one id.
    struct Group {
        std::shared_ptr<MimeBundle> shared;  // of those that were updated; null: none was
        std::size_t shared_count = 0;
        std::size_t shared_bytes = 0;    // of each
        std::vector<std::size_t> loose;  // places of those shown since
        std::uint64_t loose_bytes = 0;
    };
    bool take_room(std::uint64_t bytes);

    std::uint64_t text_bytes_max_;
    std::vector<NotebookOutput> outputs_;
    std::unordered_map<std::string, Group> groups_;
    std::uint64_t bytes_ = 0;       // of all that is not stream text
    std::uint64_t text_bytes_ = 0;  // of stream text
    std::uint64_t left_out_ = 0;
};

}  // namespace cellkeep::session
