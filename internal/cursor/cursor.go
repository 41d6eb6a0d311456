// Package cursor writes and reads cursors, the places at which a page of a list ends. It refuses a
// text that no page returned: taken for a cursor, it could repeat a page or skip rows. Only the two
// stores and package nodestore use it.
package cursor

import (
	"fmt"
	"hash/crc32"
	"strconv"
	"strings"

	"github.com/holdfast-mq/holdfast"
)

// base has digits and lower-case letters. A cursor ends with checkDigits of them as a checksum.
const (
	base        = 36
	checkDigits = 3
)

// Format returns the cursor before the row seq. For 0, the end of a list, it is empty.
func Format(seq int64) string {
	if seq <= 0 {
		return ""
	}
	return FormatPlace(seq)
}

// FormatPlace returns a cursor of several numbers, none of them negative.
func FormatPlace(place ...int64) string {
	numbers := make([]string, len(place))
	for i, n := range place {
		numbers[i] = strconv.FormatInt(n, base)
	}
	text := strings.Join(numbers, ".")
	return text + check(text)
}

// Parse reads a cursor of Format. The error wraps ErrInvalid and names the field "after".
func Parse(after string) (seq int64, err error) {
	place, err := ParsePlace(after, 1)
	if err == nil && place[0] == 0 {
		err = refuse(after)
	}
	if err != nil {
		return 0, err
	}
	return place[0], nil
}

// ParsePlace reads a cursor of FormatPlace with the given count of numbers.
func ParsePlace(after string, numbers int) ([]int64, error) {
	texts := strings.Split(after[:max(len(after)-checkDigits, 0)], ".")
	place := make([]int64, len(texts))
	for i, text := range texts {
		n, err := strconv.ParseInt(text, base, 64)
		if err != nil || n < 0 {
			return nil, refuse(after)
		}
		place[i] = n
	}
	if len(place) != numbers || FormatPlace(place...) != after {
		return nil, refuse(after)
	}
	return place, nil
}

func refuse(after string) error {
	if len(after) > 80 {
		after = strings.ToValidUTF8(after[:80], "") + "…"
	}
	return fmt.Errorf("%w: %w", holdfast.ErrInvalid,
		&holdfast.FieldError{Field: "after", Value: after, Problem: "is not a place that a page gave; take next of the page before, as it is"})
}

func check(number string) string {
	sum := crc32.ChecksumIEEE([]byte(number)) % (base * base * base)
	text := strconv.FormatUint(uint64(sum), base)
	return strings.Repeat("0", checkDigits-len(text)) + text
}
