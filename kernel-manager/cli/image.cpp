// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/cli/image.hpp"

#include "kernel-manager/cli/commands.hpp"
#include "kernel-manager/cli/run/console.hpp"
#include "kernel-manager/cli/serve/service_setup.hpp"
#include "kernel-manager/image/image_verify.hpp"
#include "kernel-manager/image/prepare.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

namespace cellkeep::cli {

namespace {

Result<image::Store> open_image_store() {
    BOOST_OUTCOME_TRY(const std::string directory, image::default_store_directory());
    return image::Store::open(directory);
}

int report(const Status& status) {
    if (status.has_error()) {
        print_error(status.error());
        return kExitFailed;
    }
    return kExitDone;
}

Status build(const ImageBuild& command) {
    BOOST_OUTCOME_TRY(image::Store store, open_image_store());
    BOOST_OUTCOME_TRY(
        image::Sources sources, find_image_sources(command.kernels, command.foreign_kernels));
    sources.packages.insert(
        sources.packages.end(), command.packages.begin(), command.packages.end());
    const auto say = [](const std::string& line) { print_error("cellkeep: " + line + "\n"); };
    BOOST_OUTCOME_TRY(const auto prepared, image::prepare(store, sources, std::nullopt, say));
    print(prepared.environment.record.digest + "\n");
    return ok();
}

Status list(bool as_json) {
    BOOST_OUTCOME_TRY(const image::Store store, open_image_store());
    BOOST_OUTCOME_TRY(const auto images, store.list());
    print(as_json ? image_json(images) : image_table(images));
    return ok();
}

Status remove_image(const ImageRemove& command) {
    BOOST_OUTCOME_TRY(image::Store store, open_image_store());
    if (command.unused) {
        BOOST_OUTCOME_TRY(const std::size_t removed, store.remove_unused());
        print(std::to_string(removed) + " removed\n");
        return ok();
    }
    BOOST_OUTCOME_TRY(const auto record, store.find(command.digest, std::nullopt));
    return store.remove(record);
}

Status verify(const std::string& digest) {
    BOOST_OUTCOME_TRY(image::Store store, open_image_store());
    std::vector<image::ImageRecord> records;
    if (digest.empty()) {
        BOOST_OUTCOME_TRY(const auto images, store.list());
        for (const image::StoredImage& image : images) {
            records.push_back(image.record);
        }
    } else {
        BOOST_OUTCOME_TRY(auto record, store.find(digest, std::nullopt));
        records.push_back(std::move(record));
    }
    for (const image::ImageRecord& record : records) {
        const std::string directory = store.directory_of(record);
        BOOST_OUTCOME_TRY(const auto manifest, image::load_manifest(directory, record));
        BOOST_OUTCOME_TRY(image::verify_contents(directory, record, manifest));
        print(record.digest + " is whole\n");
    }
    return ok();
}

std::string short_digest(const std::string& digest) {
    constexpr std::size_t kShown = 7 + 16;  // "sha256:" and digits
    return digest.substr(0, kShown);
}

}  // namespace

std::string image_table(const std::vector<image::StoredImage>& images) {
    using Row = std::array<std::string, 6>;
    std::vector<Row> rows = {{"DIGEST", "KIND", "FORMAT", "MIB", "USED", "MADE"}};
    for (const image::StoredImage& image : images) {
        const image::ImageRecord& record = image.record;
        rows.push_back(
            {short_digest(record.digest),
             std::string(to_string(record.kind)),
             std::string(to_string(record.format)),
             std::to_string(record.bytes >> 20U),
             image.in_use ? "yes" : "no",
             record.built_at.substr(0, record.built_at.find('.'))});
    }
    Row widest;
    for (const Row& row : rows) {
        for (std::size_t i = 0; i < row.size(); ++i) {
            widest[i].resize(std::max(widest[i].size(), row[i].size()));
        }
    }
    std::string text;
    for (Row& row : rows) {
        for (std::size_t i = 0; i + 1 < row.size(); ++i) {
            row[i].resize(widest[i].size() + 2, ' ');
            text += row[i];
        }
        text += row.back() + "\n";
    }
    return text;
}

std::string image_json(const std::vector<image::StoredImage>& images) {
    nlohmann::json list = nlohmann::json::array();
    for (const image::StoredImage& image : images) {
        list.push_back({
            {"digest", image.record.digest},
            {"kind", to_string(image.record.kind)},
            {"format", to_string(image.record.format)},
            {"bytes", image.record.bytes},
            {"in_use", image.in_use},
            {"built_at", image.record.built_at},
        });
    }
    return list.dump(2) + "\n";
}

int image_build(const ImageBuild& command) {
    return report(build(command));
}

int image_list(bool as_json) {
    return report(list(as_json));
}

int image_remove(const ImageRemove& command) {
    return report(remove_image(command));
}

int image_verify(const std::string& digest) {
    return report(verify(digest));
}

}  // namespace cellkeep::cli
