package sqlwrite

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/holdfast-mq/holdfast/internal/sqltext"
)

// valueOf is a value of a payload as a parameter of a type: nil, a bool, an
// int64, a uint64, a float64, a string or bytes, each exactly what was given.
// What cannot be is refused; the error goes on after the parameter's name.
func valueOf(t sqltext.Type, v jsontext.Value) (any, error) {
	if v.Kind() == 'n' {
		return nil, nil
	}
	switch t.Name {
	case sqltext.JSON:
		return string(v), nil
	case sqltext.Text:
		if k := v.Kind(); k == '{' || k == '[' {
			return string(v), nil
		}
		return stringOf(t, v)
	case sqltext.Boolean:
		if k := v.Kind(); k == 't' || k == 'f' {
			return k == 't', nil
		}
		return nil, unfit(t, v)
	case sqltext.Integer, sqltext.Decimal, sqltext.Double, sqltext.Real:
		return numeric(t, v)
	}
	s, err := stringOf(t, v)
	if err != nil {
		return nil, err
	}
	switch t.Name {
	case sqltext.Bytes:
		return []byte(s), nil
	case sqltext.Base64:
		b, err := base64.StdEncoding.Strict().DecodeString(s)
		if err != nil || strings.ContainsAny(s, "\r\n") {
			return nil, errors.New("is not base64, as RFC 4648 has it in section 4")
		}
		return b, nil
	}
	return timeOf(t, s)
}

// unfit says what a value is, and not what it holds.
func unfit(t sqltext.Type, v jsontext.Value) error {
	what := map[jsontext.Kind]string{'t': "true", 'f': "false", '"': "a string", '0': "a number", '{': "an object", '[': "a list"}[v.Kind()]
	return fmt.Errorf("is %s, and its parameter takes %s", what, t)
}

func stringOf(t sqltext.Type, v jsontext.Value) (string, error) {
	if v.Kind() != '"' {
		return "", unfit(t, v)
	}
	text, err := jsontext.AppendUnquote(nil, v)
	return string(text), err
}

// numeric is a number, also one in a string: some programs write all numbers
// so that a double would change.
func numeric(t sqltext.Type, v jsontext.Value) (any, error) {
	text := string(v)
	if v.Kind() == '"' {
		inner, err := jsontext.AppendUnquote(nil, v)
		if text = string(inner); err != nil || jsontext.Value(text).Kind() != '0' || !jsontext.Value(text).IsValid() || strings.ContainsAny(text, " \t\r\n") {
			return nil, unfit(t, v)
		}
	} else if v.Kind() != '0' {
		return nil, unfit(t, v)
	}
	n, ok := numberOf(text)
	if !ok {
		return nil, fmt.Errorf("is beyond what %s holds", t)
	}
	switch t.Name {
	case sqltext.Integer:
		if n.exponent >= 0 && n.whole() <= 20 {
			if i, err := strconv.ParseInt(n.String(), 10, 64); err == nil {
				return i, nil
			}
			if u, err := strconv.ParseUint(n.String(), 10, 64); err == nil {
				return u, nil
			}
		}
		return nil, errors.New("is no integer of 64 bits")
	case sqltext.Decimal:
		if n.whole() > t.Precision-t.Scale || n.fraction() > t.Scale {
			return nil, fmt.Errorf("has more digits than %s holds", t)
		}
		return n.String(), nil
	}
	bits := 64
	if t.Name == sqltext.Real {
		bits = 32
	}
	f, ok := n.float(bits)
	if !ok {
		return nil, fmt.Errorf("has more digits than %s keeps", t)
	}
	return f, nil
}

// What of ISO 8601 is taken: dates and times to the second at least, which
// nobody reads in two ways.
var (
	dateForm   = regexp.MustCompile(`^\d{4}-\d{2}-\d{2}$`)
	timeForm   = regexp.MustCompile(`^\d{2}:\d{2}:\d{2}(?:\.(\d+))?$`)
	momentForm = regexp.MustCompile(`^(\d{4}-\d{2}-\d{2})[T ](\d{2}:\d{2}:\d{2})(?:\.(\d+))?(Z|[+-]\d{2}:\d{2})?$`)
)

// timeOf is a date or time in the form that each database reads; one with a
// zone is told in UTC, as the sessions are.
func timeOf(t sqltext.Type, s string) (string, error) {
	switch t.Name {
	case sqltext.Date:
		if _, err := time.Parse(time.DateOnly, s); err != nil || !dateForm.MatchString(s) {
			return "", errors.New("is no date such as 2026-11-28")
		}
		return s, nil
	case sqltext.Time:
		parts := timeForm.FindStringSubmatch(s)
		if parts == nil {
			return "", errors.New("is no time such as 13:04:05")
		}
		if _, err := time.Parse(time.TimeOnly, s[:8]); err != nil {
			return "", errors.New("is no time such as 13:04:05")
		}
		return s, fits(t, parts[1])
	}
	parts := momentForm.FindStringSubmatch(s)
	if parts == nil {
		return "", errors.New("is no time such as 2026-11-28T13:04:05Z")
	}
	zone := parts[4]
	if zone == "" {
		zone = "Z" // as it stands
	}
	at, err := time.Parse("2006-01-02 15:04:05Z07:00", parts[1]+" "+parts[2]+zone)
	if at = at.UTC(); err != nil || at.Year() < 1 || at.Year() > 9999 {
		return "", errors.New("is no time such as 2026-11-28T13:04:05Z")
	}
	text := at.Format(time.DateTime)
	if parts[3] != "" {
		text += "." + parts[3]
	}
	return text, fits(t, parts[3])
}

// fits refuses digits of a second that would be rounded.
func fits(t sqltext.Type, fraction string) error {
	if len(strings.TrimRight(fraction, "0")) > t.Scale {
		return fmt.Errorf("has more digits of a second than %s holds", t)
	}
	return nil
}

// hasZone says whether a time tells its zone.
func hasZone(v jsontext.Value) bool {
	s, err := stringOf(sqltext.Type{}, v)
	parts := momentForm.FindStringSubmatch(s)
	return err == nil && parts != nil && parts[4] != ""
}

// listOf are the elements of a list.
func listOf(v jsontext.Value) ([]jsontext.Value, error) {
	d := jsontext.NewDecoder(bytes.NewReader(v))
	if _, err := d.ReadToken(); err != nil {
		return nil, err
	}
	var list []jsontext.Value
	for d.PeekKind() != ']' {
		e, err := d.ReadValue()
		if err != nil {
			return nil, err
		}
		list = append(list, e.Clone())
	}
	return list, nil
}
