// Package api is what a node and those who operate it say to each other over
// HTTP: questions, answers and refusals, as JSON has them.
//
// Promised: a type is written and read the same at both ends; what is stored as
// bytes (payloads, answers, data) is shown byte by byte; each refusal is a
// Problem (RFC 9457), whose sort stays what it is.
//
// Not promised: that answers do not grow. There is no behaviour here: package
// admin has it.
//
// The tags "doc", "enum", "minimum" and their like make the OpenAPI document.
package api
