package sqlwrite_test

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math"
	"math/big"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/adapter/sqlwrite"
)

// given are values of payloads: integers to 2^64 and their neighbours,
// decimals of 38 digits, text of every width, times, binary, JSON, lists, null.
func given() []string {
	list := []string{
		"null", "true", "false", "0", "-0", "1", "-1", "127", "128", "255", "256", "32767", "32768", "-32769", "2147483647", "2147483648", "16777217",
		"9007199254740993", "9223372036854775807", "-9223372036854775808", "9223372036854775808", "18446744073709551615", "18446744073709551616",
		"1.0", "1e3", "0.1", "0.5", "-2.5", "234.123457", "234.1234567", "0.30000000000000004", "1e-7", "1e400", "1e999999999", "123456789012345.5",
		"12345678901234567890123456.123456789012", "99999999999999999999999999999999999999", "99999999999999.999999", "999999999999999.999999",
		`""`, `"a"`, `"0"`, `"5"`, `"-7.25"`, `"12abc"`, `"0012"`, `" 1"`, `"é"`, `"日本語"`, `"😀"`, `"it's"`, `"back\\slash \\x41 \\101"`, `"line\nfeed"`, `"\\"`, `"{a,b}"`, `"NULL"`,
		`"xxxxxxxxxx"`, `"xxxxxxxxxxx"`, `"😀😀😀😀😀😀😀😀😀😀"`, `"😀😀😀😀😀😀😀😀😀😀😀"`, `"QUJDAA=="`, `"QUJDAA"`, `"AP+A"`,
		`"2026-11-28"`, `"2026-02-30"`, `"28.11.2026"`, `"11/28/2026"`, `"now"`, `"infinity"`, `"13:04:05"`, `"13:04:05.25"`, `"24:00:00"`, `"13:04"`,
		`"2026-11-28T13:04:05Z"`, `"2026-11-28T13:04:05"`, `"2026-11-28T01:04:05+02:00"`, `"2026-11-28T13:04:05.123456Z"`, `"2026-11-28T13:04:05.1234567Z"`, `"2026-11-28T23:59:60Z"`,
		`[]`, `[1,2,null]`, `[1.5]`, `["a","b \" \\ ,{}",null]`, `[[1,2],[3,4]]`, `{}`, `{"a": [1, "x", 12345678901234567890.5], "b":{"c":null}}`,
	}
	return append(list, `"`+strings.Repeat("w", 70_000)+`"`)
}

// column is a type of a database, and what of a payload arrives there as it
// was given. Everything else must be refused.
type column struct {
	ddl, declared string
	takes         func(v any) bool
	shown         string // an expression that shows %s; empty: the column itself
	same          func(v any, shown string) bool
}

var numberForm = regexp.MustCompile(`^-?(0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?$`)

// rational is a number, or one in a string.
func rational(v any) (*big.Rat, bool) {
	text := ""
	switch v := v.(type) {
	case json.Number:
		text = v.String()
	case string:
		text = v
	}
	if !numberForm.MatchString(text) || strings.HasSuffix(text, "e999999999") {
		return nil, false
	}
	return new(big.Rat).SetString(text)
}

func isInteger(least, most string) func(v any) bool {
	return func(v any) bool {
		r, ok := rational(v)
		low, _ := new(big.Rat).SetString(least)
		high, _ := new(big.Rat).SetString(most)
		return ok && r.IsInt() && r.Cmp(low) >= 0 && r.Cmp(high) <= 0
	}
}

func isDecimal(digits, behind int) func(v any) bool {
	return func(v any) bool {
		r, ok := rational(v)
		if !ok {
			return false
		}
		scaled := new(big.Rat).Mul(r, new(big.Rat).SetInt(new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(behind)), nil)))
		return scaled.IsInt() && len(strings.TrimPrefix(scaled.Num().String(), "-")) <= digits
	}
}

func isFloat(bits int) func(v any) bool {
	return func(v any) bool {
		r, ok := rational(v)
		if !ok {
			return false
		}
		f, _ := r.Float64()
		if bits == 32 {
			single, _ := r.Float32()
			f = float64(single)
		}
		if math.IsInf(f, 0) {
			return false
		}
		back, _ := new(big.Rat).SetString(strconv.FormatFloat(f, 'g', -1, bits))
		return back.Cmp(r) == 0
	}
}

func sameNumber(v any, shown string) bool {
	want, _ := rational(v)
	got, ok := new(big.Rat).SetString(shown)
	return ok && want.Cmp(got) == 0
}

// sameFloat compares what a database shows of a binary fraction, in fewer
// digits than it has.
func sameFloat(v any, shown string) bool {
	want, _ := rational(v)
	f, _ := want.Float64()
	got, err := strconv.ParseFloat(shown, 64)
	return err == nil && (got == f || math.Abs(got-f) <= math.Abs(f)*1e-5)
}

func isText(most int) func(v any) bool {
	return func(v any) bool {
		switch v := v.(type) {
		case string:
			return len([]rune(v)) <= most
		case []any, map[string]any:
			text, _ := json.Marshal(v)
			return len(text) <= most
		}
		return false
	}
}

func sameText(v any, shown string) bool {
	if s, ok := v.(string); ok {
		return s == shown
	}
	return sameJSON(v, shown)
}

func sameJSON(v any, shown string) bool {
	d := json.NewDecoder(strings.NewReader(shown))
	d.UseNumber()
	var got any
	if d.Decode(&got) != nil {
		return false
	}
	if n, ok := got.(json.Number); ok { // jsonb writes them in its own way
		return v == n || reflect.TypeOf(v) == reflect.TypeOf(got) && sameNumber(v, n.String())
	}
	return reflect.DeepEqual(v, got)
}

func isString(v any) bool { _, ok := v.(string); return ok }

func sameHex(v any, shown string) bool {
	return strings.EqualFold(shown, fmt.Sprintf("%x", v.(string)))
}

func isBase64(most int) func(v any) bool {
	return func(v any) bool {
		s, ok := v.(string)
		b, err := base64.StdEncoding.DecodeString(s)
		return ok && err == nil && len(b) <= most && !strings.Contains(s, "\n")
	}
}

func sameBase64(v any, shown string) bool {
	want, _ := base64.StdEncoding.DecodeString(v.(string))
	return strings.EqualFold(shown, hex.EncodeToString(want))
}

func isTime(layouts ...string) func(v any) bool {
	return func(v any) bool {
		s, ok := v.(string)
		for _, layout := range layouts {
			if _, err := time.Parse(layout, s); ok && err == nil && len(s) <= len("2026-11-28T13:04:05.123456Z07") {
				return true
			}
		}
		return false
	}
}

func sameTime(v any, shown string) bool {
	for _, layout := range []string{time.DateOnly, "15:04:05.999999", time.RFC3339Nano, "2006-01-02T15:04:05.999999"} {
		want, err := time.Parse(layout, v.(string))
		if err != nil {
			continue
		}
		for _, layout := range []string{time.DateOnly, "15:04:05.999999", "2006-01-02 15:04:05.999999", "2006-01-02 15:04:05.999999-07", time.RFC3339Nano} {
			if got, err := time.Parse(layout, shown); err == nil && got.Equal(want) {
				return true
			}
		}
	}
	return false
}

func anything(any) bool { return true }

// columns of each database, with their types as a configuration declares them;
// PostgreSQL describes its own.
func (p *place) columns() []column {
	const i64, u64 = "-9223372036854775808", "18446744073709551615"
	seconds := isTime("2006-01-02T15:04:05Z07:00", "2006-01-02T15:04:05")
	fractions := func(v any) bool {
		s, _ := v.(string)
		return seconds(v) && !strings.HasSuffix(s, "1234567Z")
	}
	whole := func(v any) bool { s, _ := v.(string); return seconds(v) && !strings.Contains(s, ".") }
	switch p.driver {
	case "postgres":
		lists := func(element func(any) bool) func(v any) bool {
			return func(v any) bool {
				list, ok := v.([]any)
				for _, e := range list {
					inner, deep := e.([]any)
					for _, e := range inner {
						ok = ok && element(e)
					}
					ok = ok && (deep || e == nil || element(e))
				}
				return ok
			}
		}
		return []column{
			{"smallint", "", isInteger("-32768", "32767"), "", sameNumber},
			{"integer", "", isInteger("-2147483648", "2147483647"), "", sameNumber},
			{"bigint", "", isInteger(i64, "9223372036854775807"), "", sameNumber},
			{"numeric", "", func(v any) bool { _, ok := rational(v); return ok }, "", sameNumber},
			{"numeric(20,6)", "decimal(20,6)", isDecimal(20, 6), "", sameNumber},
			{"real", "", isFloat(32), "", sameFloat},
			{"double precision", "", isFloat(64), "", sameNumber},
			{"boolean", "", func(v any) bool { _, ok := v.(bool); return ok }, "", func(v any, shown string) bool { return fmt.Sprint(v) == shown }},
			{"text", "", isText(math.MaxInt32), "", sameText},
			{"varchar(10)", "", isText(10), "", sameText},
			{"bytea", "", isString, "encode(%s, 'hex')", sameHex},
			{"bytea", "base64", isBase64(math.MaxInt32), "encode(%s, 'hex')", sameBase64},
			{"json", "", anything, "", sameJSON},
			{"jsonb", "", func(v any) bool { return v != json.Number("1e999999999") }, "", sameJSON},
			{"date", "", isTime(time.DateOnly), "%s::text", sameTime},
			{"time", "", isTime("15:04:05"), "%s::text", sameTime},
			{"timestamp", "", fractions, "%s::text", sameTime},
			{"timestamptz", "", func(v any) bool { s, _ := v.(string); return fractions(v) && s != "2026-11-28T13:04:05" }, "(%s at time zone 'UTC')::text", sameTime},
			{"bigint[]", "", lists(isInteger(i64, "9223372036854775807")), "to_json(%s)", sameJSON},
			{"text[]", "", lists(isText(math.MaxInt32)), "to_json(%s)", sameJSON},
		}
	case "mysql":
		return []column{
			{"tinyint", "integer", isInteger("-128", "127"), "", sameNumber},
			{"int", "integer", isInteger("-2147483648", "2147483647"), "", sameNumber},
			{"bigint", "integer", isInteger(i64, "9223372036854775807"), "", sameNumber},
			{"bigint unsigned", "integer", isInteger("0", u64), "", sameNumber},
			{"decimal(20,6)", "decimal(20,6)", isDecimal(20, 6), "", sameNumber},
			{"decimal(38,12)", "decimal(38,12)", isDecimal(38, 12), "", sameNumber},
			{"decimal(38,0)", "decimal(38,0)", isDecimal(38, 0), "", sameNumber},
			{"float", "real", isFloat(32), "", sameFloat},
			{"double", "double", isFloat(64), "", sameNumber},
			{"boolean", "boolean", func(v any) bool { _, ok := v.(bool); return ok }, "", func(v any, shown string) bool { return v == (shown == "1") }},
			{"text", "text", isText(65535), "", sameText},
			{"longtext", "text", isText(math.MaxInt32), "", sameText},
			{"varchar(10)", "text", isText(10), "", sameText},
			{"varchar(10) character set latin1", "text", func(v any) bool {
				s, ok := v.(string)
				return isText(10)(v) && (!ok || !strings.ContainsAny(s, "日😀"))
			}, "", sameText},
			{"longblob", "bytes", isString, "hex(%s)", sameHex},
			{"varbinary(20)", "base64", isBase64(20), "hex(%s)", sameBase64},
			{"json", "json", anything, "", sameJSON},
			{"date", "date", isTime(time.DateOnly), "", sameTime},
			{"time", "time", func(v any) bool { return isTime("15:04:05")(v) && v != "13:04:05.25" }, "", sameTime},
			{"datetime", "timestamp", whole, "", sameTime},
			{"datetime(6)", "timestamp(6)", fractions, "", sameTime},
		}
	}
	return []column{
		{"integer", "integer", isInteger(i64, "9223372036854775807"), "", sameNumber},
		{"numeric", "decimal(15,4)", isDecimal(15, 4), "", sameNumber},
		{"real", "double", isFloat(64), "", sameNumber},
		{"boolean", "boolean", func(v any) bool { _, ok := v.(bool); return ok }, "", func(v any, shown string) bool { return v == (shown == "1" || shown == "true") }},
		{"text", "text", isText(math.MaxInt32), "", sameText},
		{"blob", "bytes", isString, "case when %[1]s is not null then hex(%[1]s) end", sameHex},
		{"blob", "base64", isBase64(math.MaxInt32), "case when %[1]s is not null then hex(%[1]s) end", sameBase64},
		{"text", "json", anything, "", sameJSON},
	}
}

// F1-102, F1-103, F1-106, F1-107: each value in a column of each type arrives
// as it was given or is refused; never anything in between.
func TestAValueArrivesAsItWasGivenOrIsRefused(t *testing.T) {
	t.Parallel()
	everywhere(t, func(t testing.TB, p *place) {
		statements, types := map[string]string{}, map[string]string{}
		columns := p.columns()
		ddl := "create table things (id varchar(80) primary key"
		for i, c := range columns {
			ddl += fmt.Sprintf(", c%d %s", i, c.ddl)
			statements[strconv.Itoa(i)] = fmt.Sprintf("insert into things (id, c%[1]d) values (:_id, :v%[1]d)", i)
			if c.declared != "" {
				types[fmt.Sprintf("v%d", i)] = c.declared
			}
		}
		p.exec(t, ddl+")")
		w := p.writer(t, statements, func(c *sqlwrite.Config) { c.Types = types })
		for i, c := range columns {
			for _, text := range given() {
				p.arrives(t, w, i, c, text)
			}
		}
	})
}

func (p *place) arrives(t testing.TB, w *sqlwrite.Writer, i int, c column, text string) {
	t.Helper()
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		t.Fatal(err)
	}
	name := fmt.Sprintf("%s as %s (%s)", text[:min(len(text), 60)], c.ddl, c.declared)
	m := message(strconv.Itoa(i), fmt.Sprintf(`{"v%d":%s}`, i, text))
	err := second(w.Deliver(t.Context(), m))
	takes := v == nil || c.takes(v)
	if err != nil {
		if f := holdfast.AsFailure(err); takes || f.Outcome != holdfast.Permanent || f.Code != "bad_value" && f.Code != "constraint" || f.MaybeDelivered {
			t.Errorf("%s: got %v %s: %v", name, f.Outcome, f.Code, err)
		}
		return
	}
	shown := fmt.Sprintf("c%d", i)
	if c.shown != "" {
		shown = fmt.Sprintf(c.shown, shown)
	}
	got := p.one(t, "select "+shown+" from things where id = '"+string(m.ID)+"'")
	switch {
	case !takes:
		t.Errorf("%s: it was taken, and is %.80s", name, got)
	case v == nil && got != "NULL", v != nil && !c.same(v, got):
		t.Errorf("%s: got %.80s", name, got)
	}
}
