// SPDX-License-Identifier: Apache-2.0
#include "tests/support/kernel_client.hpp"

#include <catch2/catch.hpp>

using cellkeep::test::content;
using cellkeep::test::count;
using cellkeep::test::first;
using cellkeep::test::KernelClient;
using cellkeep::test::Messages;
using cellkeep::test::only;
using cellkeep::test::text_of;
using nlohmann::json;

TEST_CASE("a figure arrives as a picture without any set-up", "[kernel][display]") {
    KernelClient kernel;
    const Messages answer = kernel.execute("import matplotlib.pyplot as plt\nplt.plot([1, 3, 2]);");
    const json figure = only(answer, "display_data");
    CHECK(figure["data"]["text/plain"] == "<Figure size 640x480 with 1 Axes>");
    const auto picture = figure["data"]["image/png"].get<std::string>();
    CHECK(picture.rfind("iVBORw0KGgo", 0) == 0);
    CHECK(picture.find('\n') == std::string::npos);
    CHECK(text_of(answer, "stderr").empty());
    CHECK(kernel.read_stderr().empty());
    // A second one, and nothing is shown twice.
    CHECK(count(kernel.execute("plt.plot([1]);\nplt.show()"), "display_data") == 1);
    CHECK(count(kernel.execute("1"), "display_data") == 0);
}

TEST_CASE("%matplotlib inline changes nothing", "[kernel][display]") {
    KernelClient kernel;
    const Messages answer =
        kernel.execute("%matplotlib inline\nimport matplotlib.pyplot as plt\nplt.plot([1]);");
    CHECK(only(answer, "execute_reply")["status"] == "ok");
    CHECK(count(answer, "display_data") == 1);
}

TEST_CASE("a data frame arrives as HTML and as text", "[kernel][display]") {
    KernelClient kernel;
    const json data = only(
        kernel.execute("import pandas as pd\npd.DataFrame({'a': [1, 2]})"),
        "execute_result")["data"];
    CHECK(data["text/html"].get<std::string>().find("<table") != std::string::npos);
    CHECK(data["text/plain"].get<std::string>().find("0  1") != std::string::npos);
}

TEST_CASE("representations and mime bundles of objects are sent", "[kernel][display]") {
    KernelClient kernel;
    const Messages answer = kernel.execute(
        "class A:\n    def _repr_html_(self): return '<b>a</b>'\n    def __repr__(self): return "
        "'A'\n"
        "class B:\n    def _repr_mimebundle_(self, include=None, exclude=None):\n"
        "        return {'application/x-test+json': {'n': float('nan')}, 'text/plain': 'B'}\n"
        "display(A())\nB()");
    CHECK(
        only(answer, "display_data")["data"] ==
        json{{"text/html", "<b>a</b>"}, {"text/plain", "A"}});
    CHECK(
        only(answer, "execute_result")["data"]["application/x-test+json"] == json{{"n", nullptr}});
}

TEST_CASE("a display is updated under its id", "[kernel][display]") {
    KernelClient kernel;
    const Messages answer =
        kernel.execute("handle = display('one', display_id='here')\nhandle.update('two')");
    CHECK(only(answer, "display_data")["transient"]["display_id"] == "here");
    const json update = only(answer, "update_display_data");
    CHECK(update["transient"]["display_id"] == "here");
    CHECK(update["data"]["text/plain"] == "'two'");
}

TEST_CASE("clear_output is sent after what was printed before it", "[kernel][display]") {
    KernelClient kernel;
    const Messages answer = kernel.execute(
        "from IPython.display import clear_output\nprint('old', end='')\nclear_output(wait=True)\n"
        "print('new', end='')");
    std::string order;
    for (const auto& message : answer) {
        if (message.header().msg_type == "stream") {
            order += content(message)["text"].get<std::string>() + " ";
        } else if (message.header().msg_type == "clear_output") {
            CHECK(content(message)["wait"] == true);
            order += "clear ";
        }
    }
    CHECK(order == "old clear new ");
}

TEST_CASE("binary data are one line of base64", "[kernel][display]") {
    KernelClient kernel;
    const json data = only(
        kernel.execute("from IPython.display import Image\n"
                       "display(Image(data=b'\\x89PNG\\r\\n\\x1a\\n' + bytes(100), format='png'))"),
        "display_data")["data"];
    CHECK(data["image/png"].get<std::string>().find('\n') == std::string::npos);
}

TEST_CASE("a display past the frame's limit is the cell's error", "[kernel][display]") {
    KernelClient kernel;
    const Messages answer = kernel.execute("display({'text/plain': 'x' * (129 << 20)}, raw=True)");
    CHECK(only(answer, "execute_reply")["ename"] == "ValueError");
    CHECK(only(kernel.execute("1"), "execute_reply")["status"] == "ok");
}

TEST_CASE("a formatter that knows a builtin type is asked about its values", "[kernel][display]") {
    KernelClient kernel;
    const auto data = [&](std::string_view code) {
        return only(kernel.execute(code), "execute_result")["data"];
    };
    CHECK(data("7") == json{{"text/plain", "7"}});
    CHECK(data("1 / 3") == json{{"text/plain", "0.3333333333333333"}});
    (void)kernel.execute(
        "all = get_ipython().display_formatter.formatters\n"
        "all['text/html'].for_type(int, lambda value: f'<i>{value}</i>')\n"
        "all['text/latex'].for_type_by_name('builtins', 'list', lambda value: '$L$')\n"
        "from IPython.core.formatters import BaseFormatter\n"
        "class Counting(BaseFormatter):\n"
        "    format_type = 'text/x-length'\n"
        "    print_method = '_repr_length_'\n"
        "    def __call__(self, value):\n"
        "        return str(len(value)) if isinstance(value, str) else None\n"
        "%precision 2");
    CHECK(data("7") == json{{"text/html", "<i>7</i>"}, {"text/plain", "7"}});
    CHECK(data("True")["text/html"] == "<i>True</i>");  // a bool is an int
    CHECK(data("[1]") == json{{"text/latex", "$L$"}, {"text/plain", "[1]"}});
    CHECK(data("1 / 3") == json{{"text/plain", "0.33"}});
    CHECK(data("'abc'") == json{{"text/plain", "'abc'"}});
    (void)kernel.execute("get_ipython().display_formatter.register_formatter(Counting())");
    CHECK(data("'abc'") == json{{"text/plain", "'abc'"}, {"text/x-length", "3"}});
    (void)kernel.execute("all['text/markdown'].for_type(object, lambda value: '*o*')");
    CHECK(data("{1}")["text/markdown"] == "*o*");
    const json own = data(
        "class Own(int):\n    def _repr_html_(self): return 'own'\n"
        "del all['text/html'].type_printers[int]\nOwn(1)");
    CHECK(own["text/html"] == "own");
}
