// Package brief limits what is shown of an unbounded list, in a log line, a problem or a health
// report.
package brief

import (
	"fmt"
	"strings"
)

// Names is how many names a line shows: enough to recognize them.
const Names = 10

// List joins the first few names and says how many more there are.
func List(names []string) string { return Join(names, ", ", Names) }

// Join is List with another separator and another limit.
func Join(list []string, separator string, most int) string {
	if len(list) <= most {
		return strings.Join(list, separator)
	}
	return fmt.Sprintf("%s%sand %d more", strings.Join(list[:most], separator), separator, len(list)-most)
}

// Count returns a number with its noun: "1 message", "2 messages".
func Count[N int | int64](n N, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

// AnyOf lists alternatives: "parked, expired or discarded".
func AnyOf[T any](list []T) string {
	names := make([]string, len(list))
	for i, s := range list {
		names[i] = fmt.Sprint(s)
	}
	last := len(names) - 1
	if last < 1 {
		return strings.Join(names, "")
	}
	return strings.Join(names[:last], ", ") + " or " + names[last]
}
