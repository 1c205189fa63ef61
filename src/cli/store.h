// Which store, and how to connect to it.
#pragma once

#include <baton/client.h>
#include <baton/options.h>

#include <string>

#include "args.h"

namespace baton::cli {

// args.url, or the default directory as a URL; that one is made, with mode 0700. Throws Failure.
std::string store_url(const Args& args);

// What the command line says to the library. Log lines go to stderr, warnings and up.
ClientOptions client_options(const Args& args);

// Throws Error.
Client connect(const Args& args);

}  // namespace baton::cli
