package main

import (
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
	t := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	_, _ = fmt.Fprintln(t, strings.Join(head, "\t"))
	for _, row := range rows {
		for i, cell := range row {
			row[i] = oneLine(cell)
		}
		_, _ = fmt.Fprintln(t, strings.TrimRight(strings.Join(row, "\t"), "\t"))
	}
	if err := t.Flush(); err != nil { // reports the errors of earlier writes
		return fmt.Errorf("print: %w", err)
	}
	return nil
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
