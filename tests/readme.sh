#!/bin/bash
# Copyright 2026 The M2PO plugin authors
# SPDX-License-Identifier: Apache-2.0
#
# What README.md says of the config is what the schema says.
set -u

# "| `KEY` | `DEFAULT` |" for each property, from a schema that has one property a block
rows() {
  awk '
    /^    "[a-z0-9_]*": \{$/ { split($0, part, "\""); key = part[2] }
    /^      "default": / {
      sub(/^      "default": /, ""); sub(/,$/, ""); gsub(/"/, "")
      printf "| `%s` | `%s` |\n", key, $0
    }' plugin/config.schema.json
}

expected=$(rows)
found=$(sed -n 's/^| \(`[a-z0-9_]*`\) | .* | \(`[^|]*`\) | .* |$/| \1 | \2 |/p' README.md)
name='README.md lists the config keys of m2po with their defaults'
if [ -n "$expected" ] && [ "$expected" = "$found" ]; then
  echo "ok - $name"
else
  echo "not ok - $name"
  diff <(echo "$expected") <(echo "$found") | sed 's/^/  /'
fi
