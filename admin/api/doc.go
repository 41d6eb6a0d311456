// Package api is the language of the operator API: the requests, answers and refusals
// that a node and its operators exchange over HTTP, as JSON.
//
// Promised: both ends write and read a type the same way. What is stored as bytes
// (payloads, answers, data) is shown byte by byte. Each refusal is a Problem (RFC 9457),
// whose sort is stable.
//
// Not promised: that answers keep their fields; they may get more. There is no behaviour
// here: package admin has it.
//
// The tags "doc", "enum", "minimum" and their like make the OpenAPI document.
package api
