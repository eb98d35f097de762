#!/bin/bash
# Copyright 2026 The M2PO plugin authors
# SPDX-License-Identifier: Apache-2.0
#
# Each rule of abi/README.md is judged by something: a check of `rft check`, a fixture for hosts, or a
# test of tests/conformance that has the rule's number in its name.
set -u

: "${BUILD:=$PWD/build}"
rules=$(sed -n 's/^\*\*\([PH][0-9]*\)\..*/\1/p' abi/README.md)
cited=$({
  grep -v '^#' tests/conformance/host/expectations.tsv | cut -f 2
  grep -ohE "\([PH][0-9]+(, [PH][0-9]+)*\)" tests/conformance/*.sh
  "$BUILD/rft" check --list
} | grep -oE '\b[PH][0-9]+\b' | sort -u)

for rule in $rules; do
  if grep -qx "$rule" <<<"$cited"; then
    echo "ok - rules: $rule is judged"
  else
    echo "not ok - rules: $rule is judged by nothing"
  fi
done
unknown=$(grep -vxF "$rules" <<<"$cited" | xargs)
if [ -n "$rules" ] && [ -z "$unknown" ]; then
  echo "ok - rules: every rule that is cited is one of abi/README.md"
else
  echo "not ok - rules: cited, and not in abi/README.md: $unknown"
fi
