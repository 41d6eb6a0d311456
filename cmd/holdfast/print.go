package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"
	"unicode"

	"github.com/holdfast-mq/holdfast/internal/shown"
)

// note prints a line for people, beside the output.
func (a *app) note(format string, args ...any) {
	_, _ = io.WriteString(a.stderr, plain(fmt.Sprintf(format, args...)))
}

// printJSON prints one document in one line.
func printJSON(w io.Writer, v any) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return fmt.Errorf("print: %w", err)
	}
	return nil
}

// table prints aligned columns.
func table(w io.Writer, head []string, rows [][]string) error {
	var text bytes.Buffer
	t := tabwriter.NewWriter(&text, 0, 8, 2, ' ', 0)
	_, _ = fmt.Fprintln(t, strings.Join(head, "\t"))
	for _, row := range rows {
		for i, cell := range row {
			row[i] = oneLine(cell)
		}
		// A row has all its cells, also the empty ones at its end, or the columns would begin anew below it.
		_, _ = fmt.Fprintln(t, strings.Join(row, "\t"))
	}
	_ = t.Flush() // a buffer takes all
	for line := range strings.Lines(text.String()) {
		if _, err := fmt.Fprintln(w, strings.TrimRight(line, " \n")); err != nil {
			return fmt.Errorf("print: %w", err)
		}
	}
	return nil
}

// listing prints a table with a row for each element of a list.
func listing[T any](w io.Writer, head []string, list []T, row func(*T) []string) error {
	rows := make([][]string, len(list))
	for i := range list {
		rows[i] = row(&list[i])
	}
	return table(w, head, rows)
}

// plain replaces characters that a terminal would interpret: other systems wrote much of what is
// printed here.
func plain(s string) string {
	return strings.Map(func(r rune) rune {
		if shown.Acts(r) && r != '\n' && r != '\t' {
			return unicode.ReplacementChar
		}
		return r
	}, s)
}

// oneLine returns plain text of bounded length without line breaks.
func oneLine(s string) string {
	s = strings.Join(strings.Fields(plain(s)), " ")
	const most = 60
	if runes := []rune(s); len(runes) > most {
		return string(runes[:most-1]) + "…"
	}
	return s
}

// at formats an instant.
func at(t time.Time) string { return t.UTC().Format(time.RFC3339) }
