// Package metrics counts what a node does, and shows it to Prometheus.
//
// Promised: the metrics that the source specification names keep exactly
// those names (OI-16); watching an attempt costs well under a microsecond and
// does not grow with the number of destinations; asking for the metrics reads
// numbers that are kept in memory and the size of one file, never the
// database; no label holds what a
// peer or caller may choose freely, so nobody can grow the node's memory
// through them.
//
// Not promised: counters that survive a restart (their readers expect that
// they do not), and the OpenMetrics format, which would rename the counters.
//
// Metrics is the Observer that package node passes to the library, and the
// handler of GET /metrics.
package metrics
