// Package brief bounds what is shown of a list that nobody bounds: in a log
// line, a problem or a health report.
package brief

import (
	"fmt"
	"strings"
)

// Names is how many names a line has: enough to recognise what they are.
const Names = 10

// List joins the first few and tells how many more there are.
func List(names []string) string { return Join(names, ", ", Names) }

// Join is List with another separator and another bound.
func Join(list []string, separator string, most int) string {
	if len(list) <= most {
		return strings.Join(list, separator)
	}
	return fmt.Sprintf("%s%sand %d more", strings.Join(list[:most], separator), separator, len(list)-most)
}

// Count is a number with what it counts: "1 message", "2 messages".
func Count[N int | int64](n N, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

// AnyOf names what one of is needed: "parked, expired or discarded".
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
