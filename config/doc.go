// Package config turns one YAML file, the environment and the flags of a
// command into one Config, and refuses what cannot work before anything
// starts.
//
// Promised: all faults are reported at once, each with the place it stands at
// (file and line, variable or flag), its path, its value and what to do; a
// secret is never part of a fault, a warning, a log line or a printed
// configuration; Load reads the file, the secrets that it names and nothing
// else, and changes nothing.
//
// Not promised: that a configuration which loads also runs. Whether the port
// is free, the certificate valid or the destination there is found out by the
// node, which calls Load once at its start and makes the library's types of
// the result.
//
// A value is taken from the first of these that has it:
//
//	flag ──► environment (HOLDFAST_…) ──► file ──► default
//
// Every key stands in one table, configKeys, with all that is known of it; the
// types of a section and its keys share a file. docs/guide/configuration.md tells
// them to people, and a test compares the two (ADR 0029).
package config
