// All passwords that tests give to stores and clients. None of them may appear in anything that the
// test suite writes. baton_secret_scan looks for them in the log of a whole run.
#pragma once

#include <array>

namespace baton::test {

inline constexpr const char* kRootPassword = "black-swan-03";
inline constexpr const char* kAppPassword = "blue-heron-17";
inline constexpr const char* kReaderPassword = "red-kite-42";
inline constexpr const char* kOtherPassword = "grey-owl-23";
inline constexpr const char* kWrongPassword = "wrong-crow-99";
inline constexpr const char* kFirstNewPassword = "green-finch-08";  // set while a test runs
inline constexpr const char* kNextNewPassword = "umber-finch-09";
inline constexpr const char* kLastNewPassword = "azure-finch-10";

inline constexpr std::array kCanaries{kRootPassword, kAppPassword, kReaderPassword, kOtherPassword,
                                      kWrongPassword, kFirstNewPassword, kNextNewPassword,
                                      kLastNewPassword,
                                      // This marks a private key in the usual form.
                                      "PRIVATE KEY-----"};

}  // namespace baton::test
