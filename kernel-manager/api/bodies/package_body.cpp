// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/api/bodies/package_body.hpp"

#include "kernel-manager/environments/package_name.hpp"

#include <chrono>
#include <cstddef>
#include <string>

namespace cellkeep::api {

namespace {

constexpr std::uint64_t kInstallTimeMsMin = 1000;

void read_packages(ObjectReader& reader, std::vector<std::string>& packages, FieldErrors& errors) {
    const nlohmann::json* const list = reader.array("python");
    if (list == nullptr) {
        if (!reader.has("python")) {
            reader.fail("python", "is required: packages are installed for Python only");
        }
        return;
    }
    if (list->empty() || list->size() > environments::kOrderedPackagesMax) {
        reader.fail(
            "python",
            "must have 1 to " + std::to_string(environments::kOrderedPackagesMax) + " entries");
        return;
    }
    const std::string base = child_pointer(reader.pointer(), "python");
    for (std::size_t i = 0; i < list->size(); ++i) {
        const auto* const text = (*list)[i].get_ptr<const std::string*>();
        const std::string where = child_pointer(base, std::to_string(i));
        if (text == nullptr) {
            errors.push_back({where, "must be a string"});
            continue;
        }
        if (const Status checked = environments::check_package(*text); checked.has_error()) {
            errors.push_back({where, checked.error().message() + ". " + checked.error().hint()});
            continue;
        }
        packages.push_back(*text);
    }
}

}  // namespace

session::PackageOrder parse_package_order(const nlohmann::json& body, FieldErrors& errors) {
    session::PackageOrder order;
    ObjectReader reader(body, "", errors);
    if (body.is_object()) {
        read_packages(reader, order.python, errors);
    }
    order.allow_source = reader.boolean("allow_source").value_or(false);
    const auto time = reader.integer(
        "timeout_ms",
        {kInstallTimeMsMin, static_cast<std::uint64_t>(session::kInstallTimeMax.count())});
    if (time) {
        order.time = std::chrono::milliseconds(*time);
    }
    reader.finish();
    return order;
}

}  // namespace cellkeep::api
