package httpapi

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/holdfast-mq/holdfast/admin"
	"github.com/holdfast-mq/holdfast/admin/api"
)

// decode fills the struct that req points to, and reports every field that is
// unknown, given twice or of a wrong type. An empty body is an empty object.
func (b *body) decode(req any) ([]api.Fault, *api.Problem) {
	if b.fault != nil || len(b.data) == 0 {
		return nil, b.fault
	}
	members, p := readObject(b.data)
	if p != nil {
		return nil, p
	}
	var f filler
	f.fill(reflect.ValueOf(req).Elem(), "", members)
	return append(f.faults, make([]api.Fault, f.more)...), nil // count the faults that no problem names
}

// filler stores members in the fields of structs.
type filler struct {
	faults []api.Fault // at most mostFaults
	more   int
}

func (f *filler) fault(field, value, problem string) {
	if len(f.faults) == api.MostFaults {
		f.more++
		return
	}
	f.faults = append(f.faults, api.Fault{Field: field, Value: value, Problem: problem})
}

// fill stores the members of one object. In faults, path precedes their names.
func (f *filler) fill(target reflect.Value, path string, members []member) {
	names := jsonNames(target.Type())
	seen := map[string]bool{}
	for _, m := range members {
		i := slices.Index(names, m.name)
		switch {
		case i < 0:
			f.fault(path+api.Clip(m.name), "", unknownField(m.name, names)) // without the value: a password in the wrong place is an unknown field, too
			continue
		case seen[m.name]:
			f.fault(path+m.name, plain(target.Field(i).Type(), m.value), "is given twice; keep one of them")
		default:
			f.fillField(target.Field(i), path+m.name, m.value)
		}
		seen[m.name] = true
	}
}

// fillField stores a value. Objects of package api, alone or in a list, are checked as strictly as the request itself.
func (f *filler) fillField(field reflect.Value, path string, value json.RawMessage) {
	t := field.Type()
	null := string(value) == "null"
	switch {
	case ours(t) && !null:
		f.fillObject(field, path, value)
	case t.Kind() == reflect.Pointer && ours(t.Elem()) && !null:
		field.Set(reflect.New(t.Elem()))
		f.fillObject(field.Elem(), path, value)
	case t.Kind() == reflect.Slice && ours(t.Elem()) && !null:
		var items []json.RawMessage
		if err := json.Unmarshal(value, &items); err != nil {
			f.fault(path, plain(t, value), "must be a list, […], of objects")
			return
		}
		if len(items) > mostItems {
			f.fault(path, fmt.Sprintf("%d entries", len(items)), fmt.Sprintf("at most %d are taken", mostItems))
			return
		}
		field.Set(reflect.MakeSlice(t, len(items), len(items)))
		for i, item := range items {
			f.fillObject(field.Index(i), fmt.Sprintf("%s[%d]", path, i), item)
		}
	default:
		if problem := assign(field, value); problem != "" {
			f.fault(path, plain(t, value), problem)
		}
	}
}

// ours reports whether a type is an object of package api.
func ours(t reflect.Type) bool {
	return t.Kind() == reflect.Struct && t.PkgPath() == reflect.TypeFor[api.Fault]().PkgPath()
}

func (f *filler) fillObject(target reflect.Value, path string, value json.RawMessage) {
	members, p := readObject(value)
	if p != nil {
		f.fault(path, plain(target.Type(), value), "must be an object, {…}")
		return
	}
	f.fill(target, path+".", members)
}

// mostItems is the longest list of objects.
const mostItems = admin.MostRecipients

type member struct {
	name  string
	value json.RawMessage
}

// readObject splits an object into its members; values keep their bytes.
func readObject(data []byte) ([]member, *api.Problem) {
	if !utf8.Valid(data) {
		return nil, api.Unreadable.Problem("the body is not UTF-8; JSON must be (RFC 8259)")
	}
	dec := json.NewDecoder(bytes.NewReader(data))
	start, err := dec.Token()
	if err != nil {
		return nil, notJSON(data, dec, err)
	}
	if start != json.Delim('{') {
		return nil, api.Unreadable.Problem("the body must be an object, {…}")
	}
	var members []member
	for dec.More() {
		var m member
		name, err := dec.Token()
		if err != nil {
			return nil, notJSON(data, dec, err)
		}
		m.name, _ = name.(string) // the decoder accepts no other names
		if err := dec.Decode(&m.value); err != nil {
			return nil, notJSON(data, dec, err)
		}
		members = append(members, m)
	}
	if _, err := dec.Token(); err != nil {
		return nil, notJSON(data, dec, err)
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return nil, api.Unreadable.Problem("the body goes on after the object's closing brace" + position(data, dec.InputOffset()))
	}
	return members, nil
}

func notJSON(data []byte, dec *json.Decoder, err error) *api.Problem {
	at := dec.InputOffset()
	if e, ok := errors.AsType[*json.SyntaxError](err); ok {
		at = e.Offset
	}
	text := err.Error()
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		text, at = "the body ends in the middle of the object", int64(len(data))
	}
	return api.Unreadable.Problem(text + position(data, at))
}

// position counts lines and bytes from 1, as editors do.
func position(data []byte, offset int64) string {
	before := data[:min(max(offset, 0), int64(len(data)))]
	line := 1 + bytes.Count(before, []byte("\n"))
	return fmt.Sprintf(" (line %d, byte %d)", line, max(len(before)-1-bytes.LastIndexByte(before, '\n'), 1))
}

// jsonNames returns the names of a struct's fields in JSON, in their order.
func jsonNames(t reflect.Type) []string {
	names := make([]string, t.NumField())
	for i := range names {
		names[i], _, _ = strings.Cut(t.Field(i).Tag.Get("json"), ",")
	}
	return names
}

// assign decodes a value into a field. If it cannot, it says what the value must be.
func assign(field reflect.Value, value json.RawMessage) string {
	if field.Type() == reflect.TypeFor[json.RawMessage]() {
		field.SetBytes(value)
		return ""
	}
	if err := json.Unmarshal(value, field.Addr().Interface()); err == nil {
		return ""
	}
	t := field.Type()
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch t.Kind() { //nolint:exhaustive // requests have fields of these kinds only
	case reflect.String:
		return `must be a text in quotes, such as "…"`
	case reflect.Int:
		return "must be a whole number"
	case reflect.Bool:
		return "must be true or false"
	case reflect.Map:
		return `must be an object of texts, such as {"name": "value"}`
	case reflect.Slice:
		return `must be a list of texts, such as ["…"]`
	default:
		return "has the wrong type"
	}
}

func unknownField(given string, names []string) string {
	for _, name := range names {
		if strings.EqualFold(strings.Map(letters, name), strings.Map(letters, given)) {
			return "is not a field of this request; it is written " + name
		}
	}
	return "is not a field of this request; the fields are " + strings.Join(names, ", ")
}

// plain returns the part of a value that an error may show: a number, a text or a word, of a field whose
// meaning is known. Objects, lists, and values that are kept as they are, such as settings and payloads, may
// hold a secret.
func plain(t reflect.Type, value json.RawMessage) string {
	if t == reflect.TypeFor[json.RawMessage]() || t.Kind() == reflect.Map || bytes.ContainsAny(value[:min(1, len(value))], "{[") {
		return ""
	}
	return api.Clip(string(value))
}

// letters drops the separators that people put between words: max_retries means maxRetries.
func letters(r rune) rune {
	if r == '_' || r == '-' || r == ' ' {
		return -1
	}
	return r
}
