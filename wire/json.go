package wire

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/holdfast-mq/holdfast"
)

// MaxDepth is how deep objects and arrays may nest in an envelope, including its own two levels. It
// limits the stack of every program that reads one.
const MaxDepth = 256

// Codes of the Failures of this package.
const (
	CodePayload  = "payload_not_json"    // permanent: the payload cannot be sent
	CodeReserved = "reserved_header"     // permanent: a header of the message starts with rf-
	CodeInvalid  = "invalid_message"     // permanent: a field of the message is invalid
	CodeEnvelope = "bad_envelope"        // permanent: the bytes are not an envelope
	CodeVersion  = "unsupported_version" // lane fault: the peer speaks another protocol
)

const jsonSpace = " \t\r\n"

// TrimPayload checks that payload is one JSON value and returns it without the whitespace around
// it. The result shares memory with payload. An empty payload becomes null. The error is a Failure
// that parks the message.
//
// JSON here is RFC 8259 in UTF-8, no deeper than an envelope allows. Everything else is up to the
// application: duplicate names, lone surrogate escapes and numbers of any size pass unchanged.
func TrimPayload(payload []byte) ([]byte, error) {
	if len(payload) == 0 {
		return []byte("null"), nil
	}
	trimmed := bytes.Trim(payload, jsonSpace)
	if !isJSON(trimmed, MaxDepth-1) {
		return nil, &holdfast.Failure{
			Outcome: holdfast.Permanent, Code: CodePayload, Reason: holdfast.ReasonUndecodable,
			Err: errors.New("encode envelope: the payload is not one JSON value in UTF-8"),
		}
	}
	return slices.Clip(trimmed), nil
}

// isJSON reports whether b is one JSON value, nested at most depth levels deep. It checks UTF-8
// first, so the option of jsontext then permits only lone surrogate escapes.
func isJSON(b []byte, depth int) bool {
	return utf8.Valid(b) && !deeper(b, depth) && jsontext.Value(b).IsValid(jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
}

// deeper reports whether objects and arrays in b nest deeper than most. It needs no valid JSON, and
// looks at single bytes only if there are enough brackets.
func deeper(b []byte, most int) bool {
	if bytes.Count(b, []byte{'['})+bytes.Count(b, []byte{'{'}) <= most {
		return false
	}
	depth, inString := 0, false
	for i := 0; i < len(b); i++ {
		switch c := b[i]; {
		case inString && c == '\\':
			i++
		case c == '"':
			inString = !inString
		case inString:
		case c == '[' || c == '{':
			if depth++; depth > most {
				return true
			}
		case c == ']' || c == '}':
			depth--
		}
	}
	return false
}

// syntaxFault says where b stops being JSON. It leaves out the text of jsontext, which quotes names
// of the payload.
func syntaxFault(err error) error {
	if s, ok := errors.AsType[*jsontext.SyntacticError](err); ok {
		return fmt.Errorf("not valid JSON near byte %d", s.ByteOffset)
	}
	return errors.New("not valid JSON")
}
