// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/jupyter/channels/channels_passing.hpp"

#include <algorithm>
#include <deque>
#include <utility>

namespace cellkeep::jupyter {

using nlohmann::json;

namespace {

/// The newest that fit into so many bytes, which become less.
json write_answers(
    const std::vector<PassedPlace::Answer>& answers,
    std::size_t& bytes_left,
    std::size_t& dropped) {
    std::deque<json> kept;
    for (std::size_t end = answers.size(); end > 0; --end) {
        const PassedPlace::Answer& answer = answers[end - 1];
        const std::string_view frame = answer.message.frame();
        if (frame.size() > bytes_left) {
            break;
        }
        bytes_left -= frame.size();
        kept.push_front({{"frame", std::string(frame)}, {"after", answer.after}});
    }
    dropped += answers.size() - kept.size();
    json list(kept);
    return list;
}

}  // namespace

json write_places(const std::vector<PassedPlace>& places, std::size_t& dropped) {
    std::deque<json> written;
    std::size_t all_left = kPassedPlacesBytesMax;
    for (std::size_t end = places.size(); end > 0; --end) {
        const PassedPlace& place = places[end - 1];
        const std::size_t granted = std::min(all_left, kPassedPlaceBytesMax);
        std::size_t left = granted;
        json answers = write_answers(place.answers, left, dropped);
        all_left -= granted - left;
        written.push_front(
            {{"key", place.key},
             {"seen", place.seen},
             {"answers", std::move(answers)},
             {"lost", place.lost},
             {"lost_parent", place.lost_parent}});
    }
    json list(written);
    return list;
}

std::vector<PassedPlace> read_places(const json& text, std::size_t& dropped) {
    std::vector<PassedPlace> places;
    for (const json& one : text) {
        PassedPlace place;
        place.key = one.at("key").get<std::string>();
        place.seen = one.at("seen").get<std::uint64_t>();
        place.lost = one.at("lost").get<std::uint64_t>();
        place.lost_parent = one.at("lost_parent").get<std::string>();
        for (const json& answer : one.at("answers")) {
            auto message = protocol::Message::from_frame(answer.at("frame").get<std::string>());
            if (message.has_error()) {
                ++dropped;
                continue;
            }
            place.answers.push_back(
                {std::move(message).value(), answer.at("after").get<std::uint64_t>()});
        }
        places.push_back(std::move(place));
    }
    return places;
}

}  // namespace cellkeep::jupyter
