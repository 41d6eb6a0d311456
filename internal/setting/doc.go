// Package setting reads, prints, checks and explains mappings of a YAML file.
//
// A Section is the table of the keys of one mapping, with everything that is known
// about them: names, forms, defaults, and the texts of the guide and the JSON Schema. A
// package with settings declares such a table beside its struct: package config for
// the whole file, an adapter for its kind of destination (ADR 0029, 0031).
//
// Promised: every fault is reported with its place. A secret is never part of a fault;
// a printed configuration shows only where a secret comes from.
package setting
