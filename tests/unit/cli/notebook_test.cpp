// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/cli/kernel/notebook.hpp"

#include <catch2/catch.hpp>

namespace cellkeep::cli {
namespace {

constexpr const char* kNotebook = R"({
 "cells": [
  {"cell_type": "markdown", "id": "m", "metadata": {}, "source": ["# a\n", "b"]},
  {"cell_type": "code", "id": "c", "execution_count": 7, "metadata": {"z": 1, "a": 2},
   "outputs": [{"output_type": "stream", "name": "stdout", "text": "old"}], "source": ["x = 1\n", "x"]},
  {"cell_type": "code", "metadata": {"tags": ["raises-exception"]}, "source": "1/0"}
 ],
 "metadata": {"kernelspec": {"name": "python3"}}, "nbformat": 4, "nbformat_minor": 5
})";

TEST_CASE("code cells are found with their source and tags", "[cli][notebook]") {
    const auto cells = Notebook::parse(kNotebook, "n").value().code_cells();
    REQUIRE(cells.size() == 2);
    CHECK(cells[0].position == 1);
    CHECK(cells[0].source == "x = 1\nx");
    CHECK_FALSE(cells[0].may_raise);
    CHECK(cells[1].may_raise);
}

TEST_CASE("outputs are replaced and everything else stays, in its order", "[cli][notebook]") {
    auto notebook = Notebook::parse(kNotebook, "n").value();
    notebook.set_outputs(1, 3, nlohmann::json::parse(R"([{"output_type":"stream","text":"new"}])"));
    notebook.set_session_id("ses_1");
    const std::string text = notebook.to_text();
    const auto after = nlohmann::ordered_json::parse(text);
    CHECK(after["cells"][1]["execution_count"] == 3);
    CHECK(after["cells"][1]["outputs"][0]["text"] == "new");
    CHECK(after["cells"][1]["id"] == "c");
    CHECK(after["cells"][0]["source"][1] == "b");
    CHECK(after["metadata"]["cellkeep"]["session_id"] == "ses_1");
    CHECK(after["metadata"]["kernelspec"]["name"] == "python3");
    CHECK(text.find("\"z\"") < text.find("\"a\""));
    CHECK(text.back() == '\n');
    CHECK(text.substr(0, 12) == "{\n \"cells\": ");
}

TEST_CASE("clearing leaves nothing of an earlier run", "[cli][notebook]") {
    auto notebook = Notebook::parse(kNotebook, "n").value();
    notebook.clear_outputs();
    const auto after = nlohmann::json::parse(notebook.to_text());
    for (const std::size_t i : {1U, 2U}) {
        CHECK(after["cells"][i]["execution_count"].is_null());
        CHECK(after["cells"][i]["outputs"].empty());
    }
    CHECK_FALSE(after["cells"][0].contains("outputs"));
}

TEST_CASE("what is not a notebook of format 4 is refused by name", "[cli][notebook]") {
    const std::string text = GENERATE(
        as<std::string>(),
        "",
        "{",
        "[]",
        "{}",
        R"({"nbformat": 3, "cells": []})",
        R"({"nbformat": "4", "cells": []})",
        R"({"nbformat": 4})",
        R"({"nbformat": 4, "cells": {}})",
        R"({"nbformat": 4, "cells": [1]})",
        R"({"nbformat": 4, "cells": [{"cell_type": "code"}]})",
        R"({"nbformat": 4, "cells": [{"cell_type": "code", "source": 1}]})",
        R"({"nbformat": 4, "cells": [{"source": ""}]})",
        R"({"nbformat": 4, "cells": [], "metadata": []})");
    CAPTURE(text);
    const auto notebook = Notebook::parse(text, "file.ipynb");
    REQUIRE(notebook.has_error());
    CHECK_THAT(notebook.error().message(), Catch::Matchers::StartsWith("file.ipynb "));
}

TEST_CASE("pictures are decoded, also when their lines are broken", "[cli][notebook]") {
    const auto outputs = nlohmann::json::parse(R"([
        {"output_type": "stream", "text": "x"},
        {"output_type": "display_data", "data": {"image/png": "Zm9v\n"}},
        {"output_type": "display_data", "data": {"image/png": ["Zm\n", "9v"]}},
        {"output_type": "display_data", "data": {"image/png": "not base64"}},
        {"output_type": "display_data", "data": {"image/png": 5, "text/plain": "y"}},
        {"output_type": "display_data", "data": "z"},
        7])");
    const auto pictures = png_pictures(outputs);
    REQUIRE(pictures.size() >= 2);
    CHECK(pictures[0] == "foo");
    CHECK(pictures[1] == "foo");
    CHECK(pictures.size() == 2);
}

}  // namespace
}  // namespace cellkeep::cli
