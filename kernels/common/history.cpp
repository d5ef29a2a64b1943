// SPDX-License-Identifier: Apache-2.0
#include "kernels/common/history.hpp"

namespace cellkeep::kernels {

namespace {

using nlohmann::json;

class History final : public xeus::xhistory_manager {
 public:
    explicit History(Interpreter& interpreter) : interpreter_(interpreter) {}

 private:
    void configure_impl() override {}

    void store_inputs_impl(
        int /*session*/,
        int /*line_num*/,
        const std::string& /*input*/,
        const std::string& /*output*/) override {}

    json get_tail_impl(int n, bool raw, bool output) const override {
        return interpreter_.history(
            {{"hist_access_type", "tail"}, {"n", n}, {"raw", raw}, {"output", output}});
    }

    json get_range_impl(int session, int start, int stop, bool raw, bool output) const override {
        return interpreter_.history(
            {{"hist_access_type", "range"},
             {"session", session},
             {"start", start},
             {"stop", stop},
             {"raw", raw},
             {"output", output}});
    }

    json search_impl(
        const std::string& pattern, bool raw, bool output, int n, bool unique) const override {
        return interpreter_.history(
            {{"hist_access_type", "search"},
             {"pattern", pattern},
             {"raw", raw},
             {"output", output},
             {"n", n},
             {"unique", unique}});
    }

    Interpreter& interpreter_;
};

}  // namespace

std::unique_ptr<xeus::xhistory_manager> make_history(Interpreter& interpreter) {
    return std::make_unique<History>(interpreter);
}

}  // namespace cellkeep::kernels
