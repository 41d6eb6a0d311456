package doctor

import (
	"errors"
	"fmt"
	"io/fs"
	"time"

	"github.com/holdfast-mq/holdfast/internal/brief"
	"github.com/holdfast-mq/holdfast/sqlite"
)

func judgeData(f *Findings) []Check {
	const g = in("Data")
	if f.Data == "" {
		return []Check{g.skipped("data folder", "the configuration does not say which; name it with --data")}
	}
	folder, further := judgeFolder(g, f)
	checks := []Check{folder}
	if !further {
		return checks
	}
	checks = append(checks, judgeFile(g, f)...)
	if len(f.Damaged) > 0 {
		checks = append(checks, judgeSetAside(g, f.Damaged))
	}
	return append(checks, judgeBackups(g, f))
}

// judgeSetAside judges files set aside. If everything in a file was salvaged, a person only needs to see it.
func judgeSetAside(g in, files []sqlite.Damage) Check {
	const name = "files set aside"
	var list []string
	whole := true
	for i := range files {
		d := &files[i]
		list = append(list, d.String())
		whole = whole && d.Done && d.Lost == 0 && d.Mended == 0 && !d.More && d.Salvaged.Broken == 0
	}
	if whole {
		return g.warning(name, fmt.Sprintf("%d damaged, and all of their rows are in the new database", len(files)),
			"look for the cause in the disk and its log, then move the files out of the data folder").listing(list)
	}
	return g.failing(name, fmt.Sprintf("%d damaged; what could not be read of them is not delivered", len(files)),
		"a backup may hold what is lost; then move the files out of the data folder").listing(list)
}

// mend agrees with what a start does by itself. A backup holds less than what a salvage finds.
const mend = "stop the node, keep a copy of the whole folder, and start it again: it sets the file aside and salvages what can be read; put a backup in its place only if too much was lost"

const asItsUser = "run the doctor as the user of the node; if you do, give that user the folder"

// judgeFolder judges the data folder. further says whether it makes sense to look into it.
func judgeFolder(g in, f *Findings) (c Check, further bool) {
	const name = "data folder"
	switch d := f.Folder; {
	case errors.Is(d.Err, fs.ErrNotExist):
		return g.warning(name, f.Data+" does not exist", "the first start makes it; if there was one, check whether its disk is mounted"), false
	case errors.Is(d.Err, fs.ErrPermission):
		return g.warning(name, fmt.Sprintf("%s: %v", f.Data, d.Err), asItsUser), false
	case d.Err != nil:
		return g.failing(name, fmt.Sprintf("%s: %v", f.Data, d.Err), "find out what is wrong with the disk, or name another folder with --data"), false
	case !d.IsDir:
		return g.failing(name, f.Data+" is not a folder", "name another with data or --data"), false
	case errors.Is(d.Write, fs.ErrPermission):
		return g.warning(name, fmt.Sprintf("%s: this user may not write there: %v", f.Data, d.Write), asItsUser), true
	case d.Write != nil:
		return g.failing(name, fmt.Sprintf("%s: nothing can be written: %v", f.Data, d.Write), "mount its disk for writing; the kernel's log says why it is not"), true
	case d.Mode.Perm()&0o007 != 0 && !d.Shut:
		return g.warning(name, fmt.Sprintf("%s has mode %04o: every user of this machine can look into it", f.Data, d.Mode.Perm()),
			fmt.Sprintf("chmod %s %s", lessMode(d.Mode), f.Data)), true
	}
	return g.ok(name, f.Data), true
}

func judgeFile(g in, f *Findings) []Check {
	const name = "database"
	c := f.File
	sizes := fmt.Sprintf("%s, and %s of log", size(c.Size), size(c.Log))
	switch {
	case errors.Is(c.Err, fs.ErrNotExist):
		return []Check{g.warning(name, "there is no holdfast.db yet", "the first start makes it; if there was one, put it back from a backup")}
	case errors.Is(c.Err, sqlite.ErrDamaged):
		return []Check{g.failing(name, c.Err.Error(), mend).listing(c.Integrity.Problems)}
	case errors.Is(c.Err, sqlite.ErrLogWaits):
		return []Check{g.warning(name, c.Err.Error()+" ("+size(c.Log)+")", "start the node, and run the doctor again; do not delete the log: it holds accepted messages")}
	case c.Err != nil:
		return []Check{g.warning(name, c.Err.Error(), "run the doctor as the user of the node, or with a longer --timeout")}
	}
	checks := []Check{g.ok(name, sizes).with("databaseBytes", float64(c.Size)).with("logBytes", float64(c.Log))}
	if c.Log > 256<<20 {
		checks[0] = g.warning(name, sizes+": the log is not merged into the file", "something reads the file for long: another program, or a backup; find out who has it open").
			with("databaseBytes", float64(c.Size)).with("logBytes", float64(c.Log))
	}
	return append(checks, judgeSchema(g, f), judgeIntegrity(g, f), judgeRows(g, f))
}

// judgeRows judges changes inside a row, which SQLite does not notice.
func judgeRows(g in, f *Findings) Check {
	const name = "rows"
	r := f.File.Rows
	read := brief.Count(r.Messages, "message", "messages") + " and " + brief.Count(r.InboxIDs, "inbox id", "inbox ids")
	if r.Cut {
		read = "a sample, the oldest " + read
	}
	switch {
	case len(f.File.Integrity.Problems) > 0:
		return g.skipped(name, "the file is damaged: the hashes of its rows would add nothing")
	case f.File.Schema != f.File.Newest:
		return g.skipped(name, "hashes are only read in a database of this release")
	case r.Broken > 0:
		var list []string
		for _, row := range r.Rows {
			list = append(list, row.String())
		}
		return g.failing(name, fmt.Sprintf("%d not as accepted, by their hashes, of %s", r.Broken, read),
			"look for the cause in the disk and its log; the node parks what it meets of them and sends none, and gives no damaged answer; a backup may hold them as they were").listing(list)
	case r.Cut:
		return g.ok(name, fmt.Sprintf("%s are what was accepted, by their hashes, in %s; --full reads all", read, span(r.Took)))
	case r.Known > 0:
		return g.ok(name, fmt.Sprintf("%s are what was accepted, by their hashes, but for %d damaged ones that are known or discarded, in %s", read, r.Known, span(r.Took)))
	}
	return g.ok(name, fmt.Sprintf("%s are what was accepted, by their hashes, in %s", read, span(r.Took)))
}

func judgeSchema(g in, f *Findings) Check {
	c := f.File
	switch {
	case c.Schema > c.Newest:
		return g.failing("schema", fmt.Sprintf("number %d is of a newer release; this one knows %d", c.Schema, c.Newest), "use the release that wrote it, or a newer one")
	case c.Refused != nil:
		return g.failing("schema", c.Refused.Error(), "a node does not start with it")
	case c.Schema == 0:
		return g.ok("schema", "no tables yet; the first start makes them")
	case c.Schema < c.Newest:
		return g.ok("schema", fmt.Sprintf("number %d; the next start of this release brings it to %d", c.Schema, c.Newest))
	}
	return g.ok("schema", fmt.Sprintf("number %d, that of this release", c.Schema))
}

func judgeIntegrity(g in, f *Findings) Check {
	i := f.File.Integrity
	kind := "quick check"
	if f.File.Full {
		kind = "whole check"
	}
	switch {
	case len(i.Problems) > 0:
		return g.failing("integrity", kind+": "+brief.Count(len(i.Problems), "problem", "problems"),
			mend).listing(first(i.Problems, 20))
	case len(i.Left) > 0:
		return g.ok("integrity", fmt.Sprintf("%s: no problem in %d of %d tables; %s was too short for %s; --full takes the time it needs",
			kind, i.Checked, i.Tables, span(i.Took), brief.Join(i.Left, ", ", 5)))
	}
	return g.ok("integrity", fmt.Sprintf("%s: no problem in %s, in %s", kind, brief.Count(i.Tables, "table", "tables"), span(i.Took)))
}

func judgeBackups(g in, f *Findings) Check {
	const name = "backups"
	b := f.Backups
	switch {
	case b.Err != nil:
		return g.warning(name, b.Err.Error(), "run the doctor as the user of the node")
	case !b.Exists:
		return g.skipped(name, "there is no folder of backups")
	case b.Count == 0:
		return g.warning(name, "the folder of backups is empty", "make one, and find out why there is none")
	}
	age := f.Now.Sub(b.At)
	detail := fmt.Sprintf("%s; the newest, %s, is %s old", brief.Count(b.Count, "file", "files"), b.Newest, span(age))
	if age > 26*time.Hour {
		return g.warning(name, detail, "find out why there is no newer one").with("ageSeconds", age.Seconds())
	}
	return g.ok(name, detail).with("ageSeconds", age.Seconds())
}

// first shortens a list, and says how many items it leaves out.
func first(list []string, n int) []string {
	if len(list) <= n {
		return list
	}
	return append(list[:n:n], fmt.Sprintf("and %d more", len(list)-n))
}
