// Chooses the store and connects to it.
#pragma once

#include <baton/client.h>
#include <baton/options.h>

#include <string>

#include "args.h"

namespace baton::cli {

// args.url, or the URL of the default directory, which is made with mode 0700 if it is missing.
// Throws Failure.
std::string store_url(const Args& args);

// The client options of this command line. Warnings and errors of the log go to stderr.
ClientOptions client_options(const Args& args);

// Throws Error.
Client connect(const Args& args);

}  // namespace baton::cli
