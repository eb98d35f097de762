#!/bin/sh
# Copyright 2026 The M2PO plugin authors
# SPDX-License-Identifier: Apache-2.0
#
# Prints C source that holds the given JSON files as text: config.schema.json becomes
# m2po_embedded_config_schema, NAME.json becomes m2po_embedded_preset_NAME (embedded.h).
# Characters, not integers: bytes of UTF-8 are negative where char is signed.
set -eu

printf '#include "embedded.h"\n'
for file in "$@"; do
  case $file in
  */config.schema.json) name=m2po_embedded_config_schema ;;
  *) name=m2po_embedded_preset_$(basename "$file" .json) ;;
  esac
  printf '\nconst char %s[] = {\n' "$name"
  od -An -v -tx1 "$file" | sed "s/ *\([0-9a-f][0-9a-f]\)/'\\\\x\1',/g"
  printf "'\\\\0'};\n"
done
