// Package metrics counts what a node does, and shows it to Prometheus.
//
// Promised: the metrics that the source specification names keep exactly those names
// (OI-16). Observing an attempt takes well under a microsecond, however many
// destinations there are. Reading the metrics reads numbers in memory and the size of
// one file, never the database. No label holds what a peer or caller may choose
// freely, so nobody can grow the node's memory through labels.
//
// Not promised: counters that survive a restart, which their readers do not expect,
// and the OpenMetrics format, which would rename the counters.
//
// Metrics is the Observer that package node passes to the library, and the handler of
// GET /metrics.
package metrics
