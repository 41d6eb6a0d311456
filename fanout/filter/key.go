package filter

import (
	"encoding/binary"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"
)

// A key is a text that stands for a value. Equal values have equal keys, and the order of keys is
// the order of values of one type. The first byte is the type.
const (
	nullTag   = '0'
	boolTag   = '1'
	numberTag = '2'
	textTag   = '3'
	timeTag   = '4'
	otherTag  = '5' // objects, arrays, and numbers that are out of bounds: only their presence counts
	endOfKeys = "6"
)

// keyOf returns the key of a JSON value, of which text is the content.
func keyOf(kind jsontext.Kind, text string) string {
	if kind == jsontext.KindString {
		return textKey(text)
	}
	if kind == jsontext.KindNumber {
		if key, ok := numberKey(text); ok {
			return key
		}
	}
	if kind == jsontext.KindNull {
		return string(nullTag)
	}
	if kind == jsontext.KindFalse || kind == jsontext.KindTrue {
		return string(boolTag) + text[:1]
	}
	return string(otherTag)
}

func textKey(s string) string { return string(textTag) + s }

// backwards turns a text's key around.
func backwards(key string) string {
	b := []byte(key)
	slices.Reverse(b[1:])
	return string(b)
}

func timeKey(t time.Time) string {
	b := []byte{timeTag}
	b = binary.BigEndian.AppendUint64(b, uint64(t.Unix())^1<<63) // with the sign turned, negative ones come first
	return string(binary.BigEndian.AppendUint32(b, uint32(t.Nanosecond())))
}

// maxExponent bounds the power of ten of numbers. It keeps a key short; a number beyond it is a
// mistake or an attack.
const maxExponent = 1 << 30

// numberKey returns the key of a JSON number: sign, power of ten, digits. All of a negative number
// is complemented, so that the greater comes first. It reports whether s is a number within bounds.
func numberKey(s string) (string, bool) {
	digits, power, negative, ok := decimal(s)
	if !ok {
		return "", false
	}
	if digits == "" {
		return string(numberTag) + "n", true // between m and p
	}
	b := make([]byte, 0, len(digits)+7)
	if !negative {
		b = binary.BigEndian.AppendUint32(append(b, numberTag, 'p'), uint32(power+maxExponent))
		return string(append(b, digits...)), true
	}
	b = binary.BigEndian.AppendUint32(append(b, numberTag, 'm'), ^uint32(power+maxExponent))
	for _, d := range []byte(digits) {
		b = append(b, '0'+'9'-d)
	}
	return string(append(b, '9'+1)), true // -1 comes after -1.5
}

// decimal takes a JSON number apart: it is 0.digits times ten to the power, where digits neither
// begin nor end with 0. Zero has no digits.
func decimal(s string) (digits string, power int, negative, ok bool) {
	if !isNumber(s) {
		return "", 0, false, false
	}
	s, negative = strings.CutPrefix(s, "-")
	if i := strings.IndexAny(s, "eE"); i >= 0 {
		n, err := strconv.Atoi(s[i+1:])
		if err != nil || n <= -maxExponent/2 || n >= maxExponent/2 {
			// Zero is zero, whatever its power.
			return "", 0, false, strings.Trim(s[:i], "0.") == ""
		}
		s, power = s[:i], n
	}
	whole, fraction, _ := strings.Cut(s, ".")
	power += len(whole)
	all := whole + fraction
	digits = strings.TrimLeft(all, "0")
	power -= len(all) - len(digits)
	return strings.TrimRight(digits, "0"), power, negative, power > -maxExponent && power < maxExponent
}

// isNumber reports whether s is a number of the JSON grammar.
func isNumber(s string) bool {
	v := jsontext.Value(s)
	return s != "" && v.Kind() == jsontext.KindNumber && !strings.ContainsAny(s, " \t\r\n") && v.IsValid()
}
