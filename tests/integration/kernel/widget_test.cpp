// SPDX-License-Identifier: Apache-2.0
//
// ipywidgets over the kernel's comms, as a front end drives them.
#include "tests/support/kernel_client.hpp"

#include <catch2/catch.hpp>

#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

using cellkeep::protocol::Channel;
using cellkeep::protocol::Message;
using cellkeep::test::content;
using cellkeep::test::count;
using cellkeep::test::first;
using cellkeep::test::KernelClient;
using cellkeep::test::Messages;
using cellkeep::test::only;
using cellkeep::test::text_of;
using nlohmann::json;

namespace {

constexpr const char* kViewType = "application/vnd.jupyter.widget-view+json";

/// The comm_open of the first widget of this model.
const Message& opening(const Messages& messages, std::string_view model) {
    for (const Message& message : messages) {
        if (message.header().msg_type == "comm_open" &&
            content(message)["data"]["state"]["_model_name"] == model) {
            return message;
        }
    }
    throw std::runtime_error("no widget of the model " + std::string(model));
}

/// What a front end sends when a value has changed there.
Messages update(
    KernelClient& kernel,
    const json& comm_id,
    const json& state,
    const json& buffer_paths = json::array(),
    const std::vector<std::string_view>& buffers = {}) {
    const json data{{"method", "update"}, {"state", state}, {"buffer_paths", buffer_paths}};
    return kernel.receive_until_idle(kernel.send(
        Channel::kShell,
        "comm_msg",
        {{"comm_id", comm_id}, {"data", data}},
        json::object(),
        buffers));
}

json value_of(KernelClient& kernel, const char* expression) {
    return only(kernel.execute(expression), "execute_result")["data"]["text/plain"];
}

}  // namespace

TEST_CASE("a slider is shown, moved and observed", "[kernel][widget]") {
    KernelClient kernel;
    const Messages shown = kernel.execute(
        "import ipywidgets\n"
        "slider = ipywidgets.IntSlider(3)\n"
        "slider.observe(lambda change: print('now', change['new']), 'value')\n"
        "display(slider)");
    const Message& open = opening(shown, "IntSliderModel");
    const json id = content(open)["comm_id"];
    CHECK(content(open)["target_name"] == "jupyter.widget");
    CHECK(cellkeep::test::metadata(open).contains("version"));
    const json view = only(shown, "display_data")["data"][kViewType];
    CHECK(view["model_id"] == id);
    CHECK(view["version_major"] == 2);

    const Messages moved = update(kernel, id, {{"value", 7}});
    CHECK(text_of(moved, "stdout") == "now 7\n");
    const std::string request = moved.front().parent().msg_id;
    for (const Message& message : moved) {
        CHECK(message.parent().msg_id == request);  // the callback's output is the comm message's
    }
    CHECK(value_of(kernel, "slider.value") == "7");
    // And the other way.
    const Messages set = kernel.execute("slider.value = 9");
    CHECK(only(set, "comm_msg")["data"]["state"]["value"] == 9);
    CHECK(text_of(set, "stdout") == "now 9\n");
    const Messages closed = kernel.execute("slider.close()");
    CHECK(count(closed, "comm_close") == 1);
}

TEST_CASE("interact shows a function's result again for each value", "[kernel][widget]") {
    KernelClient kernel;
    const Messages shown =
        kernel.execute("from ipywidgets import interact\ninteract(lambda n: n * 2, n=(0, 10));");
    const json id = content(opening(shown, "IntSliderModel"))["comm_id"];
    const Messages moved = update(kernel, id, {{"value", 9}});
    CHECK(only(moved, "display_data")["data"]["text/plain"] == "18");
    CHECK(only(moved, "clear_output")["wait"] == true);
}

TEST_CASE("an Output widget captures by the msg_id of what runs", "[kernel][widget]") {
    KernelClient kernel;
    const std::string id = kernel.start(
        "from ipywidgets import Output\n"
        "output = Output()\n"
        "with output:\n    print('inside')\n"
        "print('outside')");
    const Messages answer = kernel.receive_until_idle(id);
    std::vector<std::string> order;
    bool goes_on = false;  // a line may come in two messages
    for (const Message& message : answer) {
        const json said = content(message);
        if (message.header().msg_type == "stream") {
            if (!std::exchange(goes_on, true)) {
                order.emplace_back();
            }
            order.back() += said["text"].get<std::string>();
            continue;
        }
        goes_on = false;
        if (message.header().msg_type == "comm_msg") {
            order.push_back(said["data"]["state"].value("msg_id", ""));
        }
    }
    CHECK(order == std::vector<std::string>{id, "inside\n", "", "outside\n"});
    // In a callback it is the comm message's id.
    const Messages shown = kernel.execute(
        "from ipywidgets import Button\nbutton = Button()\n"
        "@button.on_click\n@output.capture(clear_output=True)\n"
        "def clicked(_): print('clicked')\nbutton");
    const json comm = content(opening(shown, "ButtonModel"))["comm_id"];
    const Messages click = kernel.request(
        "comm_msg",
        {{"comm_id", comm}, {"data", {{"method", "custom"}, {"content", {{"event", "click"}}}}}});
    CHECK(count(click, "clear_output") == 1);
    CHECK(text_of(click, "stdout") == "clicked\n");
    CHECK(
        content(first(click, "comm_msg"))["data"]["state"]["msg_id"] ==
        click.front().parent().msg_id);
}

TEST_CASE("a widget's binary state crosses both ways", "[kernel][widget]") {
    KernelClient kernel;
    const Messages shown = kernel.execute(
        "import ipywidgets\nimage = ipywidgets.Image(value=b'\\x00\\xff\\x01', "
        "format='png')\nimage");
    const Message& open = opening(shown, "ImageModel");
    REQUIRE(open.buffer_count() == 1);
    CHECK(open.buffer(0) == std::string_view("\x00\xff\x01", 3));
    CHECK(content(open)["data"]["buffer_paths"] == json::array({{"value"}}));
    (void)update(
        kernel,
        content(open)["comm_id"],
        json::object(),
        json::array({{"value"}}),
        {std::string_view("\xfe\x00", 2)});
    CHECK(value_of(kernel, "bytes(image.value)") == "b'\\xfe\\x00'");
}

TEST_CASE(
    "open widgets are found by their target; a wrong control version is refused",
    "[kernel][widget]") {
    KernelClient kernel;
    (void)kernel.execute("import ipywidgets\nslider = ipywidgets.IntSlider(5)");
    const json comms = only(
        kernel.request("comm_info_request", {{"target_name", "jupyter.widget"}}),
        "comm_info_reply")["comms"];
    CHECK(comms.size() == 3);  // the slider, its layout and its style
    const Messages refused = kernel.request(
        "comm_open",
        {{"comm_id", "control"},
         {"target_name", "jupyter.widget.control"},
         {"data", json::object()}});
    CHECK(count(refused, "comm_close") == 1);
    CHECK(text_of(refused, "stderr").find("protocol version") != std::string::npos);
}
