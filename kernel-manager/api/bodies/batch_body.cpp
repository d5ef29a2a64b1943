// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/api/bodies/batch_body.hpp"

#include "kernel-manager/service/options_check.hpp"
#include "kernel-manager/session/session_info.hpp"
#include "protocol/limits.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <iterator>
#include <utility>

namespace cellkeep::api {

namespace {

using nlohmann::json;

constexpr std::size_t kChoiceTextMax = 16;
/// Wrong fields after which no further item is looked at.
constexpr std::size_t kBatchErrorsMax = 32;

/// Fields of an execution that a batch refuses: an item runs once, and no client talks to it.
constexpr std::array kNotInBatches{"idempotency_key", "on_disconnect", "outputs", "tools"};

void add_errors(FieldErrors own, const std::string& pointer, FieldErrors& errors) {
    for (http::FieldError& error : own) {
        errors.push_back({pointer + error.pointer, std::move(error.message)});
    }
}

template <typename Choice, std::size_t count>
void read_choice(
    ObjectReader& reader,
    const char* name,
    const std::array<std::pair<const char*, Choice>, count>& choices,
    Choice& chosen) {
    const auto text = reader.text(name, kChoiceTextMax);
    if (!text) {
        return;
    }
    std::string names;
    for (const auto& [word, choice] : choices) {
        if (*text == word) {
            chosen = choice;
            return;
        }
        names += (names.empty() ? "\"" : ", \"") + std::string(word) + "\"";
    }
    reader.fail(name, "must be one of " + names);
}

/// What an execution has not, taken out.
void take_own(json& item, BatchItem& read, const std::string& pointer, FieldErrors& errors) {
    json own = json::object();
    for (const char* name : {"label", "env"}) {
        if (const auto found = item.find(name); found != item.end()) {
            own[name] = std::move(*found);
            item.erase(name);
        }
    }
    ObjectReader reader(own, pointer, errors);
    read.label = reader.text("label", limits::kCheckpointLabelBytesMax);
    if (read.label && read.label->empty()) {
        reader.fail("label", "must not be empty");
    }
    read_env(reader, read.env, errors);
    for (const char* name : kNotInBatches) {
        if (item.contains(name)) {
            errors.push_back({child_pointer(pointer, name), "is not for an item of a batch"});
            item.erase(name);
        }
    }
}

class ItemReader {
 public:
    ItemReader(const Offer& offer, const BatchOrder& order, bool has_code)
        : has_from_(order.from.has_value()), has_code_(has_code) {
        const std::string& own = order.options.language;
        const auto& all = offer.languages;
        running_.names.push_back(own);
        std::remove_copy(all.begin(), all.end(), std::back_inserter(running_.names), own);
    }

    BatchItem read(json item, const std::string& pointer, FieldErrors& errors) const {
        BatchItem read;
        if (!item.is_object()) {
            errors.push_back({pointer, "must be an object"});
            return read;
        }
        if (has_from_ && item.contains("env")) {
            errors.push_back(
                {child_pointer(pointer, "env"), "is for fresh sessions, without \"from\""});
        }
        take_own(item, read, pointer, errors);
        read.has_code = item.contains("code");
        if (!read.has_code && has_code_) {
            item["code"] = "";  // not copied: it may be long, and there may be many
        }
        FieldErrors own;
        read.request = parse_execution(item, running_, own).request;
        add_errors(std::move(own), pointer, errors);
        return read;
    }

 private:
    session::OfferedLanguages running_;
    bool has_from_;
    bool has_code_;
};

void read_items(ObjectReader& reader, const Offer& offer, BatchOrder& order, FieldErrors& errors) {
    const json* const items = reader.array("items");
    if (items == nullptr) {
        if (!reader.has("items")) {
            reader.fail("items", "is required");
        }
        return;
    }
    if (items->empty() || items->size() > kBatchItemsMax) {
        reader.fail("items", "must be 1 to " + std::to_string(kBatchItemsMax));
        return;
    }
    const std::string base = child_pointer(reader.pointer(), "items");
    const ItemReader one(offer, order, reader.has("code"));
    for (std::size_t i = 0; i < items->size() && errors.size() < kBatchErrorsMax; ++i) {
        order.items.push_back(
            one.read((*items)[i], child_pointer(base, std::to_string(i)), errors));
    }
}

void read_budget(ObjectReader& parent, BatchOrder& order, FieldErrors& errors) {
    const json* const value = parent.object("budget");
    if (value == nullptr) {
        return;
    }
    ObjectReader reader(*value, child_pointer(parent.pointer(), "budget"), errors);
    constexpr auto kLongest = static_cast<std::uint64_t>(session::kLimitTimeMax.count());
    if (const auto wall = reader.integer("wall_ms", {1, kLongest})) {
        order.wall_budget = std::chrono::milliseconds(static_cast<std::int64_t>(*wall));
    }
    reader.finish();
}

void read_course(ObjectReader& reader, BatchOrder& order) {
    using StopOn = BatchOrder::StopOn;
    using Keep = BatchOrder::Keep;
    order.concurrency =
        reader.integer("concurrency", {1, kBatchConcurrencyMax}).value_or(kBatchConcurrencyDefault);
    read_choice(
        reader,
        "stop_on",
        std::array{
            std::pair{"never", StopOn::kNever},
            std::pair{"first_success", StopOn::kFirstSuccess},
            std::pair{"first_error", StopOn::kFirstError}},
        order.stop_on);
    read_choice(
        reader,
        "keep",
        std::array{
            std::pair{"none", Keep::kNone},
            std::pair{"winner", Keep::kWinner},
            std::pair{"all", Keep::kAll}},
        order.keep);
    const std::array disconnect{std::pair{"continue", false}, std::pair{"interrupt", true}};
    read_choice(reader, "on_disconnect", disconnect, order.interrupt_on_disconnect);
}

}  // namespace

BatchOrder parse_batch_order(const json& body, const Offer& offer, FieldErrors& errors) {
    BatchOrder order;
    ObjectReader reader(body, "", errors);
    if (!body.is_object()) {
        return order;
    }
    order.from = read_state(reader, errors);
    if (const json* const fresh = reader.object("session")) {
        FieldErrors own;
        order.options = parse_session_options(*fresh, offer, own);
        add_errors(std::move(own), "/session", errors);
        if (order.from) {
            reader.fail("session", "is for fresh sessions, without \"from\"");
        }
    }
    order.code = reader.text("code", limits::kCodeBytesMax).value_or("");
    read_items(reader, offer, order, errors);
    read_course(reader, order);
    read_budget(reader, order, errors);
    reader.finish();
    return order;
}

}  // namespace cellkeep::api
