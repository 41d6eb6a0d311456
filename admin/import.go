package admin

import (
	"fmt"
	"strings"

	"github.com/holdfast-mq/holdfast/admin/api"
	"github.com/holdfast-mq/holdfast/notify"
)

// entry is a recipient as a line of imported text gives it.
type entry struct {
	notify.Recipient
	line int
}

// parseRecipients reads recipients, and reports the faults of each line. A name with an unquoted comma is a
// fault, not two addresses.
func parseRecipients(format, text string) ([]entry, []api.Fault) {
	text = strings.TrimPrefix(text, "\ufeff")
	switch format {
	case "", "lines":
		return parseLines(text)
	case "csv":
		return parseCSV(text)
	}
	return nil, []api.Fault{{Field: "format", Value: api.Clip(format), Problem: "must be lines or csv"}}
}

func parseLines(text string) (list []entry, faults []api.Fault) {
	line := 0
	for text := range strings.Lines(text) {
		line++
		text = strings.TrimSpace(text)
		if text == "" {
			continue
		}
		e := entry{line: line}
		var problem string
		if e.Name, e.Address, problem = parseLine(text); problem != "" {
			faults = append(faults, api.Fault{Field: fmt.Sprintf("line %d", line), Value: api.Clip(text), Problem: problem})
		}
		if list = append(list, e); len(list) > MostRecipients {
			return nil, append(faults, tooMany(len(list))...)
		}
	}
	return list, faults
}

// parseLine reads an address, or a name with the address in angle brackets.
func parseLine(text string) (name, address, problem string) {
	const quote = `put a name with a comma in quotes: "Doe, Jane" <jane@example.com>`
	rest, bracketed := strings.CutSuffix(text, ">")
	if !bracketed {
		switch {
		case strings.ContainsAny(text, ",;"):
			return "", "", "has a comma or semicolon: write one recipient a line, and " + quote
		case strings.ContainsAny(text, "<>\" \t"):
			return "", "", `is neither an address nor a name with an address: write jane@example.com, or Jane <jane@example.com>`
		}
		return "", text, ""
	}
	open := strings.LastIndexByte(rest, '<')
	if open < 0 {
		return "", "", `ends with > and but no <: write Jane <jane@example.com>`
	}
	name, address = strings.TrimSpace(rest[:open]), strings.TrimSpace(rest[open+1:])
	if strings.HasPrefix(name, `"`) {
		plain, ok := unquote(name)
		if !ok {
			return "", "", `has quotes that do not enclose the name; write "Doe, Jane" <jane@example.com>`
		}
		return plain, address, ""
	}
	switch {
	case strings.ContainsAny(name, ",;"):
		return "", "", "has a name with a comma or semicolon, or several recipients: write one recipient a line, and " + quote
	case strings.ContainsAny(name, `<>"`):
		return "", "", `has quotes or brackets in the name: write "Jane \"J\" Doe" <jane@example.com>`
	}
	return name, address, ""
}

// unquote reads a quoted string with \" and \\ in it, as mail programs write names.
func unquote(s string) (string, bool) {
	var b strings.Builder
	for i := 1; i < len(s); i++ {
		switch c := s[i]; {
		case c == '"':
			return b.String(), i == len(s)-1
		case c == '\\' && i+1 < len(s):
			i++
			b.WriteByte(s[i])
		default:
			b.WriteByte(c)
		}
	}
	return "", false
}
