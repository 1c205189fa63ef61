// baton: strongly consistent locks across processes and machines. Umbrella header.
#pragma once

#include <baton/client.h>
#include <baton/error.h>
#include <baton/lock.h>
#include <baton/mutex.h>
#include <baton/name.h>
#include <baton/options.h>
#include <baton/result.h>
#include <baton/version.h>
