// Package setting reads, prints, checks and explains mappings of a YAML file.
//
// A Section is the table of the keys of one mapping, and all that is known of
// them: names, forms, defaults, what the guide and the JSON Schema tell. Whoever
// has settings declares such a table beside its struct: package config that of
// the whole file, an adapter that of its kind of destination (ADR 0029, 0031).
//
// Promised: what is wrong is reported, all of it, with the place it stands at; a
// secret is never part of a fault, and of what is printed only the place it is at.
package setting
