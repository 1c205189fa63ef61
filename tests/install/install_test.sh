#!/bin/bash
# install_test.sh STEP SOURCE BUILD WORK CMAKE CXX FLAGS: installs baton, or builds and runs a
# program outside the tree against it.
set -euo pipefail
step=$1 source=$2 build=$3 work=$4 cmake=$5 cxx=$6 flags=$7
prefix=$work/prefix
here=$source/tests/install

fail() { echo "FAILED: $*" >&2; exit 1; }

library_dir() { dirname "$(find "$prefix" -name 'libbaton.*' | head -1)"; }

by_find_package() {  # DIR
  rm -rf "$1"
  "$cmake" -S "$here/consumer" -B "$1" -DCMAKE_PREFIX_PATH="$prefix" \
    -DCMAKE_CXX_COMPILER="$cxx" -DCMAKE_CXX_FLAGS="$flags"
  "$cmake" --build "$1"
  LD_LIBRARY_PATH=$(library_dir) "$1/consumer"
}

by_pkg_config() {  # DIR
  rm -rf "$1" && mkdir -p "$1"
  PKG_CONFIG_PATH=$(dirname "$(find "$prefix" -name baton.pc)")
  export PKG_CONFIG_PATH
  pkg-config --exists --print-errors baton
  # Also for libbaton.a without --static, which would ask for everything as static libraries.
  # shellcheck disable=SC2046,SC2086
  "$cxx" -std=c++20 $flags $(pkg-config --cflags baton) "$here/consumer/main.cpp" \
    -o "$1/consumer" $(pkg-config --libs baton)
  LD_LIBRARY_PATH=$(library_dir) "$1/consumer"
  version=$(sed -n 's/^#define BATON_VERSION_STRING "\(.*\)"/\1/p' "$source/include/baton/version.h")
  [ "$(pkg-config --modversion baton)" = "$version" ] || fail "baton.pc has another version"
}

case $step in
  prefix)
    rm -rf "$prefix"
    "$cmake" --install "$build" --prefix "$prefix" > "$work/install.log"
    [ -f "$prefix/include/baton/baton.h" ] || fail "no headers"
    [ -n "$(find "$prefix" -name 'batonConfig.cmake')" ] || fail "no batonConfig.cmake"
    [ -n "$(find "$prefix" -name 'baton.pc')" ] || fail "no baton.pc"
    # Nothing private: only the public headers are installed.
    diff <(cd "$source/include" && find . -name '*.h' | sort) \
         <(cd "$prefix/include" && find . -name '*.h' | sort) || fail "headers differ"
    # Nothing installed knows where it was built.
    if grep -rIlF -e "$source/" -e "$build/" -e "$source\"" -e "$build\"" "$prefix" \
      --include='*.cmake' --include='*.pc'; then
      fail "these files name the build tree"
    fi
    ;;
  find_package) by_find_package "$work/find_package" ;;
  pkg_config) by_pkg_config "$work/pkg_config" ;;
  subdirectory)
    rm -rf "$work/subdirectory"
    # Without a choice of the program it is a static library: that one leaves its private
    # dependencies to the program.
    "$cmake" -S "$here/subdirectory" -B "$work/subdirectory" -DBATON_TREE="$source" \
      -DCMAKE_CXX_COMPILER="$cxx" -DCMAKE_CXX_FLAGS="$flags -O0" -DCMAKE_UNITY_BUILD=ON
    if grep -q '^BUILD_SHARED_LIBS:' "$work/subdirectory/CMakeCache.txt"; then
      fail "baton chooses BUILD_SHARED_LIBS for the program that includes it"
    fi
    # Configured alone: the program's choice is kept.
    rm -rf "$work/subdirectory-shared"
    "$cmake" -S "$here/subdirectory" -B "$work/subdirectory-shared" -DBATON_TREE="$source" \
      -DBUILD_SHARED_LIBS=ON -DCMAKE_CXX_COMPILER="$cxx" > "$work/subdirectory-shared.log"
    "$cmake" --build "$work/subdirectory" --parallel 2
    "$work/subdirectory/consumer"
    rm -rf "$work/subdirectory-prefix"
    "$cmake" --install "$work/subdirectory" --prefix "$work/subdirectory-prefix"
    [ -z "$(find "$work/subdirectory-prefix" -type f 2>/dev/null)" ] ||
      fail "the program that includes baton installs it"
    ;;
  static)  # what was built there, installed: find_package and pkg-config must name what it needs
    prefix=$work/static-prefix
    rm -rf "$prefix"
    "$cmake" -DBATON_INSTALL=ON "$work/subdirectory" > "$work/static-configure.log"
    "$cmake" --install "$work/subdirectory/baton" --prefix "$prefix" > "$work/static-install.log"
    [ -n "$(find "$prefix" -name 'libbaton.a')" ] || fail "no static library"
    by_find_package "$work/static-find_package"
    by_pkg_config "$work/static-pkg_config"
    ;;
  *) fail "unknown step $step" ;;
esac
