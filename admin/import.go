package admin

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/holdfast-mq/holdfast/notify"
)

// entry is a recipient as a line of a text gives it.
type entry struct {
	notify.Recipient
	line int
}

// parseRecipients reads recipients, or says of each line what is wrong with
// it. A name with a comma that is not in quotes is not taken for two addresses.
func parseRecipients(format, text string) ([]entry, []Fault) {
	text = strings.TrimPrefix(text, "\ufeff")
	switch format {
	case "", "lines":
		return parseLines(text)
	case "csv":
		return parseCSV(text)
	}
	return nil, []Fault{{"format", clip(format), "must be lines or csv"}}
}

func parseLines(text string) (list []entry, faults []Fault) {
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
			faults = append(faults, Fault{fmt.Sprintf("line %d", line), clip(text), problem})
		}
		if list = append(list, e); len(list) > mostRecipients {
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
		return "", "", `ends with > and has no <: write Jane <jane@example.com>`
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

// unquote reads "…" with \" and \\ in it, as mail programs write names.
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

// parseCSV reads a table with a row of names above it. Programs that write
// numbers with a comma separate cells by semicolons.
func parseCSV(text string) (list []entry, faults []Fault) {
	r := csv.NewReader(strings.NewReader(text))
	head, _, _ := strings.Cut(text, "\n")
	if strings.Contains(head, ";") && !strings.Contains(head, ",") {
		r.Comma = ';'
	}
	names, err := r.Read()
	if err != nil {
		return nil, []Fault{csvFault(err)}
	}
	known := []string{"address", "name", "channel", "disabled"}
	for i, name := range names {
		names[i] = strings.ToLower(strings.TrimSpace(name))
		if !slices.Contains(known, names[i]) {
			faults = append(faults, Fault{"line 1", clip(name), "is no column; the first row names the columns: " + strings.Join(known, ", ")})
		}
		if slices.Contains(names[:i], names[i]) {
			faults = append(faults, Fault{"line 1", clip(name), "is a column a second time; keep one of them"})
		}
	}
	if !slices.Contains(names, "address") {
		faults = append(faults, Fault{"line 1", clip(head), "has no column address; the first row names the columns: " + strings.Join(known, ", ")})
	}
	if len(faults) > 0 {
		return nil, faults
	}
	for {
		cells, err := r.Read()
		var e entry
		if err == nil {
			e.line, _ = r.FieldPos(0)
		}
		switch {
		case errors.Is(err, io.EOF):
			return list, faults
		case errors.Is(err, csv.ErrFieldCount):
			faults = append(faults, csvFault(err))
		case err != nil:
			return nil, append(faults, csvFault(err)) // where the next row begins is not clear
		case !e.fill(names, cells):
			faults = append(faults, Fault{fmt.Sprintf("line %d: disabled", e.line), "", "must be true or false"})
		}
		if list = append(list, e); len(list) > mostRecipients {
			return nil, append(faults, tooMany(len(list))...)
		}
	}
}

// fill takes the cells of a row; what is disabled must be clear.
func (e *entry) fill(names, cells []string) (ok bool) {
	ok = true
	for i, cell := range cells {
		cell = strings.TrimSpace(cell)
		switch names[i] {
		case "address":
			e.Address = cell
		case "name":
			e.Name = cell
		case "channel":
			e.Channel = cell
		case "disabled":
			e.Disabled, ok = yes(cell)
		}
	}
	return ok
}

func csvFault(err error) Fault {
	if errors.Is(err, io.EOF) {
		return Fault{"text", "", "is empty; the first row names the columns, of which address is needed"}
	}
	e, ok := errors.AsType[*csv.ParseError](err)
	switch {
	case !ok:
		return Fault{"text", "", "cannot be read: " + clip(err.Error())}
	case errors.Is(err, csv.ErrFieldCount):
		return Fault{fmt.Sprintf("line %d", e.StartLine), "", `has more or fewer cells than the first row; put a cell with a comma in quotes: "Doe, Jane"`}
	}
	return Fault{fmt.Sprintf("line %d", e.Line), "", fmt.Sprintf(`is not CSV (%v); put a cell with a comma in quotes, and double each quote in it: "Jane ""J"" Doe"`, e.Err)}
}

// yes reads what spreadsheets write.
func yes(cell string) (value, ok bool) {
	switch strings.ToLower(cell) {
	case "", "false", "no", "0":
		return false, true
	case "true", "yes", "1":
		return true, true
	}
	return false, false
}
