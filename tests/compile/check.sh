#!/bin/bash
# check.sh FILE COMPILER FLAGS...: compiles FILE as it is, which must work without a warning. Then
# compiles it once for each `#if WRONG == N` in it, with -DWRONG=N. Each of those must be refused,
# for the reason that FILE gives in its line "// refused with: REGEX", at a line of that block. A
# FILE without wrong forms has the line "// compiles without a warning".
set -euo pipefail
file=$1
shift
export LC_ALL=C  # messages in English, quotes in ASCII

compile() { "$@" -std=c++20 -Wall -Wextra -Wshadow -Werror -fsyntax-only "$file" 2>&1; }

compile "$@" || { echo "FAILED: the right form of $file does not compile" >&2; exit 1; }

grep -qx '// compiles without a warning' "$file" && exit 0

reason=$(sed -n 's|^// refused with: ||p' "$file")
cases=$(sed -n 's|^#if WRONG == ||p' "$file")
[ -n "$reason" ] && [ -n "$cases" ] || { echo "FAILED: $file has no wrong forms" >&2; exit 1; }
for n in $cases; do
  if output=$(compile "$@" -DWRONG="$n"); then
    echo "FAILED: $file compiles with -DWRONG=$n" >&2
    exit 1
  fi
  first=$(grep -n "^#if WRONG == $n\$" "$file" | cut -d: -f1)
  last=$(awk -v from="$first" 'NR > from && /^#(else|endif)/ { print NR; exit }' "$file")
  errors=$(grep -E ': (fatal )?error:' <<<"$output")
  elsewhere=$(while IFS= read -r line; do
    number=$(sed -nE "s|^$file:([0-9]+):.*|\1|p" <<<"$line")
    [ -n "$number" ] && [ "$number" -gt "$first" ] && [ "$number" -lt "$last" ] || echo "$line"
  done <<<"$errors")
  if [ -n "$elsewhere" ] || ! grep -qE "$reason" <<<"$output"; then
    printf '%s\nFAILED: %s with -DWRONG=%s is refused for another reason than "%s"\n' \
      "$output" "$file" "$n" "$reason" >&2
    exit 1
  fi
  echo "refused as it should be: -DWRONG=$n"
done
