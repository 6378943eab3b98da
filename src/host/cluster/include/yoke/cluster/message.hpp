#pragma once

#include <string>
#include <string_view>

namespace yoke::cluster {

// Note [Messages]
// Machines speak to the coordinator by POST /v1/beat; both bodies are JSON, and each carries
// `Yoke-Mac: hex(HMAC-SHA256(job key, DIRECTION + body))`. The request holds a number that grows,
// by which a repeated one is known; the answer repeats sender and number, so that it cannot be one
// to another question. Nothing is kept from listeners: what is said is no secret.

inline constexpr const char* kPath = "/v1/beat";
inline constexpr const char* kMacHeader = "Yoke-Mac";
inline constexpr int kProtocol = 1;

enum class Direction { request, answer };

[[nodiscard]] std::string mac_of(std::string_view key, Direction direction, std::string_view body);

[[nodiscard]] bool is_authentic(std::string_view key, Direction direction, std::string_view body,
                                std::string_view mac);

}  // namespace yoke::cluster
