package notify

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/internal/shown"
)

// SecretUse says what a channel uses a secret for.
type SecretUse struct {
	Secret string // its name
	Kind   string // of the channel
	Host   string // host that gets the secret, or what is made of it; empty: the host is in a secret URL that is not read yet
	URL    string // name of the secret that holds that URL, perhaps this one; empty: the settings name the host
}

// GivenSecret is a secret in the settings of a channel that came by the API and not as the name of a
// file: {"secret": {"value": "…"}} or {"secret": {"sealed": "…"}}. One of the fields is set.
type GivenSecret struct {
	Value  string `json:"value,omitempty"`  // as somebody gives it; never stored
	Sealed string `json:"sealed,omitempty"` // as it is stored; people see the mark of it
}

// EachSecret returns settings in which f has replaced each given secret by what it returns: a
// GivenSecret, or a name as text. Settings without any are returned as they are. What is no given
// secret is left to the adapter, which knows its settings. An error of f is returned as a
// *holdfast.FieldError of the secret's field.
func EachSecret(settings json.RawMessage, f func(field string, s GivenSecret) (any, error)) (json.RawMessage, error) {
	return eachSecret("settings", settings, f)
}

func eachSecret(at string, settings json.RawMessage, f func(field string, s GivenSecret) (any, error)) (json.RawMessage, error) {
	var out bytes.Buffer
	in, to, found := jsontext.NewDecoder(bytes.NewReader(settings)), jsontext.NewEncoder(&out), false
	for named := false; ; { // the next value is that of a key "secret"
		if named && in.PeekKind() == '{' {
			field := at + fieldOf(in.StackPointer())
			raw, err := in.ReadValue()
			if err == nil {
				raw, err = replaceSecret(field, json.RawMessage(raw), f)
			}
			if err == nil {
				err = to.WriteValue(raw)
			}
			if err != nil {
				return nil, notObject(at, err)
			}
			found, named = true, false
			continue
		}
		token, err := in.ReadToken()
		if errors.Is(err, io.EOF) {
			break
		}
		if err == nil {
			kind, n := in.StackIndex(in.StackDepth())
			named = kind == '{' && n%2 == 1 && token.String() == "secret"
			err = to.WriteToken(token)
		}
		if err != nil {
			return nil, notObject(at, err)
		}
	}
	if !found {
		return settings, nil
	}
	return bytes.TrimSpace(out.Bytes()), nil
}

// notObject returns the error of a secret, or that of a JSON text that cannot be read, which it does
// not quote.
func notObject(field string, err error) error {
	if _, ok := errors.AsType[*holdfast.FieldError](err); ok {
		return err
	}
	return &holdfast.FieldError{Field: field, Problem: "must be a JSON object, in UTF-8, with each key once"}
}

func replaceSecret(field string, raw json.RawMessage, f func(field string, s GivenSecret) (any, error)) (jsontext.Value, error) {
	var s GivenSecret
	d := json.NewDecoder(bytes.NewReader(raw))
	d.DisallowUnknownFields()
	if d.Decode(&s) != nil || (s.Value == "") == (s.Sealed == "") {
		inner, err := eachSecret(field+".secret", raw, f) // such as a target of the name "secret"
		return jsontext.Value(inner), err
	}
	with, err := f(field, s)
	if err != nil {
		if _, ok := errors.AsType[*holdfast.FieldError](err); !ok {
			err = &holdfast.FieldError{Field: field, Problem: err.Error()}
		}
		return nil, err
	}
	text, err := json.Marshal(with)
	if err != nil {
		return nil, fmt.Errorf("replace secret: %w", err)
	}
	return text, nil
}

// fieldOf turns the place of a secret, such as /signing/0/secret, into that of the field that holds
// it: .signing[0].
func fieldOf(at jsontext.Pointer) (field string) {
	for part := range at.Parent().Tokens() {
		if _, err := strconv.Atoi(part); err == nil {
			field += "[" + part + "]"
		} else {
			field += "." + strings.ToValidUTF8(shown.Clip(part, 64), "")
		}
	}
	return field
}
