package admin

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/holdfast-mq/holdfast/admin/api"
)

// parseCSV reads a table whose first row names the columns. Programs that write numbers with a decimal comma
// separate cells by semicolons.
func parseCSV(text string) (list []entry, faults []api.Fault) {
	r := csv.NewReader(strings.NewReader(text))
	head, _, _ := strings.Cut(text, "\n")
	if strings.Contains(head, ";") && !strings.Contains(head, ",") {
		r.Comma = ';'
	}
	names, err := r.Read()
	if err != nil {
		return nil, []api.Fault{csvFault(err)}
	}
	known := []string{"address", "name", "channel", "disabled"}
	if len(names) > len(known) {
		return nil, []api.Fault{{Field: "line 1", Value: fmt.Sprintf("%d columns", len(names)), Problem: "has more columns than there are: " + strings.Join(known, ", ")}}
	}
	for i, name := range names {
		names[i] = strings.ToLower(strings.TrimSpace(name))
		if !slices.Contains(known, names[i]) {
			faults = append(faults, api.Fault{Field: "line 1", Value: api.Clip(name), Problem: "is not a column; the first row names the columns: " + strings.Join(known, ", ")})
		}
		if slices.Contains(names[:i], names[i]) {
			faults = append(faults, api.Fault{Field: "line 1", Value: api.Clip(name), Problem: "names a column that an earlier cell names; keep one of them"})
		}
	}
	if !slices.Contains(names, "address") {
		faults = append(faults, api.Fault{Field: "line 1", Value: api.Clip(head), Problem: "has no column address; the first row names the columns: " + strings.Join(known, ", ")})
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
			return nil, append(faults, csvFault(err)) // the beginning of the next row is unclear
		case !e.fill(names, cells):
			faults = append(faults, api.Fault{Field: fmt.Sprintf("line %d: disabled", e.line), Problem: "must be true or false"})
		}
		if list = append(list, e); len(list) > MostRecipients {
			return nil, append(faults, tooMany(len(list))...)
		}
	}
}

// fill takes the cells of a row. ok is false if a cell for disabled is unclear.
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

func csvFault(err error) api.Fault {
	if errors.Is(err, io.EOF) {
		return api.Fault{Field: "text", Problem: "is empty; the first row must name the columns, at least address"}
	}
	e, ok := errors.AsType[*csv.ParseError](err)
	switch {
	case !ok:
		return api.Fault{Field: "text", Problem: "cannot be read: " + api.Clip(err.Error())}
	case errors.Is(err, csv.ErrFieldCount):
		return api.Fault{Field: fmt.Sprintf("line %d", e.StartLine), Problem: `has more or fewer cells than the first row; put a cell with a comma in quotes: "Doe, Jane"`}
	}
	return api.Fault{Field: fmt.Sprintf("line %d", e.Line), Problem: fmt.Sprintf(`is not CSV (%v); put a cell with a comma in quotes, and double each quote in it: "Jane ""J"" Doe"`, e.Err)}
}

// yes reads the truth values that spreadsheets write.
func yes(cell string) (value, ok bool) {
	switch strings.ToLower(cell) {
	case "", "false", "no", "0":
		return false, true
	case "true", "yes", "1":
		return true, true
	}
	return false, false
}
