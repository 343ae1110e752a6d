#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# doc/features.md tells the truth about its tests: see features.pl.
cd "$(dirname "$0")/../.." && exec perl tests/lint/features.pl doc/features.md
