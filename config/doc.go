// Package config turns one YAML file, the environment and the flags of a
// command into one Config. It refuses what cannot work before anything starts.
//
// Promised: all faults are reported at once, each with its place (file and line,
// variable or flag), its path, its value and what to do. A secret is never part of a
// fault, a warning, a log line or a printed configuration. Load reads the file and the
// secrets that it names, and nothing else, and changes nothing.
//
// Not promised: that a configuration which loads also runs. The node calls Load once at
// its start, and turns the result into the library's types. Only the node finds out
// whether the port is free, the certificate valid and the destination there.
//
// A value is taken from the first of these that has it:
//
// flag ──► environment (HOLDFAST_…) ──► file ──► default
//
// The table configKeys holds every key and everything that is known about it. The types
// of a section and its keys share a file. docs/guide/configuration.md describes the keys
// for people, and a test compares the two (ADR 0029).
package config
