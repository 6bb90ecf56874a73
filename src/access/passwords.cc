// SHA-256, comparing and drawing, by libcrypto.
#include "src/access/passwords.h"

#include <openssl/crypto.h>
#include <openssl/rand.h>
#include <openssl/sha.h>

#include <algorithm>
#include <array>

#include "storage/check.h"

namespace ingot::access {
namespace {

constexpr std::string_view kDigits = "0123456789abcdef";

std::string to_hex(std::string_view bytes) {
  std::string text;
  text.reserve(2 * bytes.size());
  for (const char c : bytes) {
    const auto byte = static_cast<unsigned char>(c);
    text += kDigits[byte >> 4];
    text += kDigits[byte & 15];
  }
  return text;
}

}  // namespace

std::string hash_password(std::string_view password) {
  std::string digest(SHA256_DIGEST_LENGTH, '\0');
  SHA256(reinterpret_cast<const unsigned char*>(password.data()), password.size(),
         reinterpret_cast<unsigned char*>(digest.data()));
  return to_hex(digest);
}

bool is_password_hash(std::string_view text) {
  return text.size() == 2 * SHA256_DIGEST_LENGTH &&
         std::ranges::all_of(text, [](char c) { return kDigits.find(c) != kDigits.npos; });
}

bool same_hash(std::string_view a, std::string_view b) {
  return a.size() == b.size() && CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

std::string random_hex(size_t digits) {
  std::string bytes((digits + 1) / 2, '\0');
  INGOT_CHECK(RAND_bytes(reinterpret_cast<unsigned char*>(bytes.data()),
                         static_cast<int>(bytes.size())) == 1);
  std::string text = to_hex(bytes);
  text.resize(digits);
  return text;
}

}  // namespace ingot::access
