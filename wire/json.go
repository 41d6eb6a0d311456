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

// MaxDepth is how deep objects and arrays may nest in an envelope, its own
// two levels included. It bounds the stack of every program that reads one.
const MaxDepth = 256

// Codes of the Failures of this package.
const (
	CodePayload  = "payload_not_json"    // permanent: the payload cannot be sent
	CodeReserved = "reserved_header"     // permanent: a header of the message starts with rf-
	CodeInvalid  = "invalid_message"     // permanent: a field of the message is not as it must be
	CodeEnvelope = "bad_envelope"        // permanent: these bytes are no envelope
	CodeVersion  = "unsupported_version" // lane fault: the peer speaks another protocol
)

const jsonSpace = " \t\r\n"

// TrimPayload checks that payload is one JSON value and returns it without
// whitespace around it, sharing its bytes. An empty payload is null. The
// error is a Failure that parks the message.
//
// JSON here is RFC 8259 in UTF-8, no deeper than an envelope allows. The rest
// is the application's: duplicate names, lone surrogate escapes and numbers of
// any size pass as they are.
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

// isJSON says whether b is one JSON value, nested at most depth levels deep.
// UTF-8 is checked before: what jsontext is told to allow are then only lone
// surrogate escapes.
func isJSON(b []byte, depth int) bool {
	return utf8.Valid(b) && !deeper(b, depth) && jsontext.Value(b).IsValid(jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
}

// deeper says whether objects and arrays in b nest deeper than most. It needs
// no valid JSON, and looks at single bytes only when there are enough brackets.
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

// syntaxFault says where b stops being JSON. The text of jsontext is left
// out: it quotes names of the payload.
func syntaxFault(err error) error {
	if s, ok := errors.AsType[*jsontext.SyntacticError](err); ok {
		return fmt.Errorf("not valid JSON near byte %d", s.ByteOffset)
	}
	return errors.New("not valid JSON")
}
