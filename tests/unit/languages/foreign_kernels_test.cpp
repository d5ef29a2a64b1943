// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/languages/foreign_kernels.hpp"

#include "tests/support/temporary_directory.hpp"

#include <catch2/catch.hpp>

#include <filesystem>
#include <fstream>

namespace cellkeep::session {

namespace {

namespace fs = std::filesystem;

class Host {
 public:
    Host() : root_(fs::canonical(folder_.path())) {
        program("usr/bin/tool");
        program("venv/bin/python");
        program("home/bin/deno");
        write("venv/pyvenv.cfg", "home = /usr/bin\n");
        write("dpkg/tool-kernel:amd64.list", "/.\n" + at("kernels/tool/kernel.json") + "\n");
        write("dpkg/other.list", at("kernels/other/kernel.json") + "\n");
        fs::create_directories(root_ / "kernels");
    }
    std::string at(const std::string& name) const { return (root_ / name).string(); }
    void write(const std::string& name, const std::string& text) {
        fs::create_directories((root_ / name).parent_path());
        std::ofstream(root_ / name) << text;
    }
    void program(const std::string& name) {
        write(name, "#!/bin/sh\n");
        fs::permissions(root_ / name, fs::perms::owner_all);
    }
    void spec(const std::string& name, const std::string& text) {
        write("kernels/" + name + "/kernel.json", text);
    }
    ForeignKernels find() const { return find({at("kernels")}); }
    ForeignKernels find(const std::vector<std::string>& directories) const {
        return find_foreign_kernels(
            directories, "relative:" + at("usr/bin") + ":/nonexistent", at("dpkg"));
    }

 private:
    cellkeep::test::TemporaryDirectory folder_;
    fs::path root_;
};

std::vector<std::string> sources(const ForeignKernel& kernel) {
    std::vector<std::string> paths;
    for (const auto& path : kernel.shared) {
        CHECK(path.shared);
        CHECK(path.source == path.target);
        paths.push_back(path.source);
    }
    return paths;
}

}  // namespace

TEST_CASE("a kernelspec is offered with its program, and what that belongs to") {
    Host host;
    host.spec("Tool", R"({"argv": ["tool", "{connection_file}"], "language": "t"})");
    host.spec("py", R"({"argv": [")" + host.at("venv/bin/python") + R"("], "display_name": "P"})");
    host.spec("deno", R"({"argv": [")" + host.at("home/bin/deno") + R"("], "language": "ts"})");
    const ForeignKernels kernels = host.find();
    CHECK(kernels.not_offered.empty());
    REQUIRE(kernels.found.size() == 3);
    const ForeignKernel& deno = kernels.found[0];
    CHECK(deno.name == "deno");
    CHECK(deno.display_name == "ts");
    // Only the file itself: the folder around it may be a home folder.
    CHECK(sources(deno) == std::vector<std::string>{host.at("home/bin/deno")});
    const ForeignKernel& python = kernels.found[1];
    CHECK(python.display_name == "P");
    CHECK(sources(python) == std::vector<std::string>{host.at("venv")});
    const ForeignKernel& tool = kernels.found[2];
    CHECK(tool.name == "tool");
    CHECK(tool.program == host.at("usr/bin/tool"));
    CHECK(tool.resources == host.at("kernels/Tool"));
}

TEST_CASE("a program of a bare name is that of the environment of the kernelspec") {
    Host host;
    host.program("venv/bin/tool");
    host.write("venv/share/jupyter/kernels/one/kernel.json", R"({"argv": ["tool"]})");
    const ForeignKernels kernels = host.find({host.at("venv/share/jupyter/kernels")});
    REQUIRE(kernels.found.size() == 1);
    CHECK(kernels.found[0].program == host.at("venv/bin/tool"));
    CHECK(sources(kernels.found[0]) == std::vector<std::string>{host.at("venv")});
}

TEST_CASE("an interpreter's own installation is shown whole, with a virtual environment of it") {
    Host host;
    host.program("py/bin/python3.11");
    host.write("py/lib/python3.11/os.py", "");
    host.write("own/pyvenv.cfg", "home = " + host.at("py/bin") + "\n");
    fs::create_directories(host.at("own/bin"));
    fs::create_symlink(host.at("py/bin/python3.11"), host.at("own/bin/python"));
    host.spec("base", R"({"argv": [")" + host.at("py/bin/python3.11") + R"("]})");
    host.spec("own", R"({"argv": [")" + host.at("own/bin/python") + R"("]})");
    const ForeignKernels kernels = host.find();
    REQUIRE(kernels.found.size() == 2);
    CHECK(sources(kernels.found[0]) == std::vector<std::string>{host.at("py")});
    CHECK(sources(kernels.found[1]) == std::vector<std::string>{host.at("own"), host.at("py")});
}

TEST_CASE("a program that could not run inside is not offered, and it is said why") {
    Host host;
    // The prefix holds more than an installation, so it is never shown whole.
    host.program("home/bin/python3.11");
    host.write("home/lib/python3.11/os.py", "");
    host.write("home/.ssh/key", "private");
    const std::string library = host.at("home/lib/python3.11");
    const std::string argv = R"({"argv": [")" + host.at("home/bin/python3.11") + R"("])";
    // The session sees the script, but not the script's interpreter.
    host.program("elsewhere/sh");
    host.write("scripts/run", "#! " + host.at("elsewhere/sh") + " -e\n");
    fs::permissions(host.at("scripts/run"), fs::perms::owner_all);
    host.spec("python", argv + "}");
    host.spec("script", R"({"argv": [")" + host.at("scripts/run") + R"("]})");
    ForeignKernels kernels = host.find();
    CHECK(kernels.found.empty());
    REQUIRE(kernels.not_offered.size() == 2);
    CHECK_THAT(kernels.not_offered[0].reason, Catch::Matchers::Contains("needs " + library));
    CHECK_THAT(
        kernels.not_offered[1].reason,
        Catch::Matchers::Contains("needs " + host.at("elsewhere/sh")));

    const auto with = [](const std::string& path) {
        return R"(, "metadata": {"cellkeep": {"read_only": [")" + path + R"("]}}})";
    };
    host.spec("python", argv + with(library));
    host.spec(
        "script", R"({"argv": [")" + host.at("scripts/run") + "\"]" + with(host.at("elsewhere")));
    kernels = host.find();
    CHECK(kernels.not_offered.empty());
    CHECK(kernels.found.size() == 2);
}

TEST_CASE("a kernelspec says what more it needs") {
    Host host;
    fs::create_directories(host.at("data/inner"));
    host.spec(
        "tool",
        R"({"argv": ["tool"], "metadata": {"cellkeep": {"transport": "ipc", "read_only": [")" +
            host.at("data/inner") + R"(", ")" + host.at("data") +
            R"("], "system_packages": ["more"]}}})");
    const ForeignKernels kernels = host.find();
    REQUIRE(kernels.found.size() == 1);
    CHECK(
        sources(kernels.found[0]) ==
        std::vector<std::string>{host.at("data"), host.at("usr/bin/tool")});
    CHECK(kernels.found[0].packages == std::vector<std::string>{"tool-kernel", "more"});
}

TEST_CASE("a directory may be a kernelspec itself, and the first of a name counts") {
    Host host;
    host.spec("tool", R"({"argv": ["tool"], "display_name": "first"})");
    host.write("second/tool/kernel.json", R"({"argv": ["tool"], "display_name": "second"})");
    const ForeignKernels kernels =
        host.find({host.at("nowhere"), host.at("kernels/tool"), host.at("second")});
    REQUIRE(kernels.found.size() == 1);
    CHECK(kernels.found[0].display_name == "first");
    CHECK(host.find({}).found.empty());
}

TEST_CASE("what cannot be offered says why") {
    Host host;
    const std::string own = R"({"argv": ["tool"], "metadata": {"cellkeep": )";
    const auto [text, why] = GENERATE_REF(table<std::string, std::string>(
        {{"", "kernel.json"},
         {"[]", "kernel.json"},
         {"{}", "argv"},
         {R"({"argv": []})", "argv is empty"},
         {R"({"argv": [""]})", "argv is empty"},
         {R"({"argv": "tool"})", "argv is no list"},
         {R"({"argv": ["tool", 1]})", "argv is no list"},
         {R"({"argv": ["no-such-tool"]})", "it needs the program no-such-tool"},
         {R"({"argv": ["/nonexistent/tool"]})", "it needs the program /nonexistent/tool"},
         {R"({"argv": ["bin/tool"]})", "it needs the program bin/tool"},
         {own + "[]}}", "metadata.cellkeep is no object"},
         {own + R"({"transport": "udp"}}})", "neither tcp nor ipc"},
         {own + R"({"read_only": "/x"}}})", "metadata.cellkeep.read_only is no list"},
         {own + R"({"read_only": ["x"]}}})", "x is no absolute path"},
         {own + R"({"read_only": ["/nonexistent/x"]}}})", "it needs /nonexistent/x"},
         {own + R"({"system_packages": [1]}}})", "metadata.cellkeep.system_packages is no list"}}));
    host.spec("tool", text);
    INFO(text);
    const ForeignKernels kernels = host.find();
    CHECK(kernels.found.empty());
    REQUIRE(kernels.not_offered.size() == 1);
    CHECK(kernels.not_offered[0].language == "tool");
    CHECK_THAT(kernels.not_offered[0].reason, Catch::Matchers::Contains(why));
}

TEST_CASE("a name that no language may have is refused") {
    Host host;
    for (const char* name : {"no.dot", "1st", "a b", "ünï"}) {
        host.spec(name, R"({"argv": ["tool"]})");
    }
    const ForeignKernels kernels = host.find();
    CHECK(kernels.found.empty());
    CHECK(kernels.not_offered.size() == 4);
}

}  // namespace cellkeep::session
