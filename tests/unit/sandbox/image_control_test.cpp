// SPDX-License-Identifier: Apache-2.0
#include "sandbox/server/image_control.hpp"

#include "tests/support/temporary_directory.hpp"

#include <catch2/catch.hpp>

#include <filesystem>
#include <fstream>

namespace cellkeep::sandbox {
namespace {

namespace fs = std::filesystem;

/// Two images beside a plain directory.
struct Images {
    Images() : path(scratch.path()) {
        for (const char* name : {"/one/usr/bin", "/two/opt", "/one-more", "/host"}) {
            fs::create_directories(path + name);
            std::ofstream(path + name + "/file") << "x";
        }
        policy.images = {
            {path + "/one", "sha256:1", "erofs image"},
            {path + "/two", "sha256:2", "private copy"}};
        policy.read_only = {
            {.source = path + "/one/usr", .target = "/usr"},
            {.source = path + "/two/opt/file", .target = "/opt/file"},
            {.source = path + "/two/etc", .target = "/etc/x", .optional = true}};
    }
    ControlState add(const std::string& source) {
        Policy with = policy;
        with.read_only.push_back({.source = source, .target = "/added"});
        return describe_private_image(with).state;
    }
    test::TemporaryDirectory scratch;
    std::string path;
    Policy policy;
};

TEST_CASE("where all read-only paths lie in images, the control is applied and names them") {
    const Images images;
    const Control control = describe_private_image(images.policy);
    CHECK(control.name == "private_image");
    CHECK(control.state == ControlState::kApplied);
    CHECK(control.mechanism == "erofs image sha256:1; private copy sha256:2");
    CHECK(control.detail.empty());
    CHECK(control.fix.empty());
}

TEST_CASE("a read-only path outside the image degrades the control") {
    Images images;
    CHECK(images.add(images.path + "/one/usr/bin/file") == ControlState::kApplied);
    fs::create_symlink(images.path + "/host", images.path + "/one/absolute");
    fs::create_symlink("../host", images.path + "/one/relative");
    fs::create_symlink("usr/bin/file", images.path + "/one/inside");
    for (const char* source :
         {"/host",
          "/host/file",
          "/one-more/file",
          "/one/../host/file",
          "/one",
          "/one/absolute/file",
          "/one/relative/file",
          "/one/relative",
          "/../usr"}) {
        CAPTURE(source);
        CHECK(images.add(images.path + source) == ControlState::kDegraded);
    }
    for (const char* source : {"/usr", "/", "/proc/self/root/usr", "/etc/passwd"}) {
        CAPTURE(source);
        CHECK(images.add(source) == ControlState::kDegraded);
    }
    CHECK(images.add(images.path + "/one/inside") == ControlState::kApplied);
}

TEST_CASE("what lies over a path must be in an image, too, even over what an operator shares") {
    Images images;
    const auto with_over = [&images](const std::string& over, bool shared) {
        Policy with = images.policy;
        with.read_only.push_back(
            {.source = images.path + "/one/usr",
             .target = "/added",
             .shared = shared,
             .over = over});
        return describe_private_image(with);
    };
    fs::create_symlink("../../host", images.path + "/two/opt/out");
    for (const bool shared : {false, true}) {
        CAPTURE(shared);
        CHECK(with_over(images.path + "/two/opt", shared).state == ControlState::kApplied);
        for (const char* over : {"/host", "/two", "/two/opt/out", "/two/../host", "/one-more"}) {
            CAPTURE(over);
            const Control control = with_over(images.path + over, shared);
            CHECK(control.state == ControlState::kDegraded);
            CHECK(control.detail == "/added is the host's own (" + images.path + over + ")");
        }
    }
}

TEST_CASE("a path from another file system under the image degrades the control") {
    Images images;
    images.policy.images = {{"/", "sha256:1", "private copy"}};
    images.policy.read_only = {{.source = "//proc/self", .target = "/x"}};
    CHECK(describe_private_image(images.policy).state == ControlState::kDegraded);
}

TEST_CASE("what the operator shares by name is no part of the image") {
    Images images;
    images.policy.read_only.push_back(
        {.source = images.path + "/host", .target = "/notebook", .shared = true});
    CHECK(describe_private_image(images.policy).state == ControlState::kApplied);
}

TEST_CASE("without an image, or with one that cannot be opened, the control is absent") {
    Images images;
    for (const std::string& root :
         {images.path + "/nowhere", images.path + "/host/file", std::string()}) {
        CAPTURE(root);
        Policy policy = images.policy;
        policy.images[1].root = root;
        const Control control = describe_private_image(policy);
        CHECK(control.state == ControlState::kAbsent);
        CHECK(control.mechanism.empty());
        CHECK_FALSE(control.detail.empty());
        CHECK_FALSE(control.fix.empty());
    }
    images.policy.images.clear();
    const Control control = describe_private_image(images.policy);
    CHECK(control.state == ControlState::kAbsent);
    CHECK_FALSE(control.fix.empty());
}

}  // namespace
}  // namespace cellkeep::sandbox
