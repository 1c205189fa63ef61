# Warnings of our own code; never imposed on those who include us.
function(baton_warnings target)
  target_compile_options(${target} PRIVATE -Wall -Wextra -Wshadow -Wnon-virtual-dtor)
  if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
    # Checks that what a mutex guards is used only while it is locked (src/common/base/mutex.h).
    target_compile_options(${target} PRIVATE -Wthread-safety)
  endif()
  if(BATON_SANITIZER AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    # g++ 12 sees uninitialised values inside <regex> and <functional> when it instruments them.
    target_compile_options(${target} PRIVATE -Wno-maybe-uninitialized)
  endif()
  if(BATON_WARNINGS_AS_ERRORS)
    target_compile_options(${target} PRIVATE -Werror)
  endif()
endfunction()

# Compiled file by file also where others are in batches: their unnamed namespaces share names.
function(baton_file_by_file)
  set_target_properties(${ARGV} PROPERTIES UNITY_BUILD OFF)
endfunction()

# The library and the command are counted, tests are not: their lines are no merit, and they build faster.
# Counters are atomic, since threads share them.
function(baton_coverage target)
  if(BATON_COVERAGE)
    target_compile_options(${target} PRIVATE --coverage -fprofile-update=atomic)
  endif()
endfunction()
