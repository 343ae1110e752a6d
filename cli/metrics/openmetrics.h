/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A snapshot as text for Prometheus. */
#ifndef LONGHAUL_METRICS_OPENMETRICS_H
#define LONGHAUL_METRICS_OPENMETRICS_H

#include <stdbool.h>
#include <stdio.h>

#include "cli/metrics/snapshot.h"

/**
 * openmetrics_write - @s to @f: as OpenMetrics 1.0 (@open), else as the text format 0.0.4.
 * @each: rows for each connection besides, whose number only the hosts know.
 */
void openmetrics_write(FILE *f, const struct snapshot *s, bool open, bool each);

#endif
