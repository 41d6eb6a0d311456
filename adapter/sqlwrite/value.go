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

// valueOf converts a value of a payload to a parameter type: nil, a bool, an int64, a uint64, a
// float64, a string or bytes, always without change. It refuses a value that cannot be converted.
// Its error continues a sentence that begins with the parameter's name.
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

// unfit names the type of a value without its content.
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

// numeric reads a number. It may be in a string: some programs write numbers so if a double would
// change them.
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
		return nil, errors.New("is not an integer of 64 bits")
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

// The accepted forms of ISO 8601: dates, and times with at least seconds. They can be read in only
// one way.
var (
	dateForm   = regexp.MustCompile(`^\d{4}-\d{2}-\d{2}$`)
	timeForm   = regexp.MustCompile(`^\d{2}:\d{2}:\d{2}(?:\.(\d+))?$`)
	momentForm = regexp.MustCompile(`^(\d{4}-\d{2}-\d{2})[T ](\d{2}:\d{2}:\d{2})(?:\.(\d+))?(Z|[+-]\d{2}:\d{2})?$`)
)

// timeOf returns a date or time in a form that each database reads. One with a zone is converted to
// UTC, the zone of the sessions.
func timeOf(t sqltext.Type, s string) (string, error) {
	switch t.Name {
	case sqltext.Date:
		if _, err := time.Parse(time.DateOnly, s); err != nil || !dateForm.MatchString(s) {
			return "", errors.New("is not a date such as 2026-11-28")
		}
		return s, nil
	case sqltext.Time:
		parts := timeForm.FindStringSubmatch(s)
		if parts == nil {
			return "", errors.New("is not a time such as 13:04:05")
		}
		if _, err := time.Parse(time.TimeOnly, s[:8]); err != nil {
			return "", errors.New("is not a time such as 13:04:05")
		}
		return s, fits(t, parts[1])
	}
	parts := momentForm.FindStringSubmatch(s)
	if parts == nil {
		return "", errors.New("is not a time such as 2026-11-28T13:04:05Z")
	}
	zone := parts[4]
	if zone == "" {
		zone = "Z" // unchanged
	}
	at, err := time.Parse("2006-01-02 15:04:05Z07:00", parts[1]+" "+parts[2]+zone)
	if at = at.UTC(); err != nil || at.Year() < 1 || at.Year() > 9999 {
		return "", errors.New("is not a time such as 2026-11-28T13:04:05Z")
	}
	text := at.Format(time.DateTime)
	if parts[3] != "" {
		text += "." + parts[3]
	}
	return text, fits(t, parts[3])
}

// fits refuses fractions of a second that would be rounded.
func fits(t sqltext.Type, fraction string) error {
	if len(strings.TrimRight(fraction, "0")) > t.Scale {
		return fmt.Errorf("has more digits of a second than %s holds", t)
	}
	return nil
}

// hasZone reports whether a time has a zone.
func hasZone(v jsontext.Value) bool {
	s, err := stringOf(sqltext.Type{}, v)
	parts := momentForm.FindStringSubmatch(s)
	return err == nil && parts != nil && parts[4] != ""
}

// listOf returns the elements of a list.
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
