// Package cursor writes and reads the places at which a page of a list ends.
// A text that no page gave is refused: taken for a place, it would show a page
// again, or leave rows out. Both stores use it, and no caller.
package cursor

import (
	"fmt"
	"hash/crc32"
	"strconv"
	"strings"

	"github.com/holdfast-mq/holdfast"
)

// base has digits and small letters, checkDigits of which stand at the end.
const (
	base        = 36
	checkDigits = 3
)

// Format writes the place before the row seq; empty for 0, the end of a list.
func Format(seq int64) string {
	if seq <= 0 {
		return ""
	}
	number := strconv.FormatInt(seq, base)
	return number + check(number)
}

// Parse reads what Format wrote. The error wraps ErrInvalid and names the
// field, after.
func Parse(after string) (seq int64, err error) {
	if at := len(after) - checkDigits; at > 0 {
		seq, err = strconv.ParseInt(after[:at], base, 64)
		if err == nil && seq > 0 && Format(seq) == after {
			return seq, nil
		}
	}
	if len(after) > 80 {
		after = strings.ToValidUTF8(after[:80], "") + "…"
	}
	return 0, fmt.Errorf("%w: %w", holdfast.ErrInvalid,
		&holdfast.FieldError{Field: "after", Value: after, Problem: "is not a place that a page gave; take next of the page before, as it is"})
}

func check(number string) string {
	sum := crc32.ChecksumIEEE([]byte(number)) % (base * base * base)
	text := strconv.FormatUint(uint64(sum), base)
	return strings.Repeat("0", checkDigits-len(text)) + text
}
