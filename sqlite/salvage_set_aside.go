package sqlite

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// Damage reports a database file that was set aside because it is damaged. The report is stored as
// JSON beside that file, until somebody moves both away.
type Damage struct {
	File  string    `json:"file"` // what was set aside; its log has "-wal" added
	At    time.Time `json:"at"`
	Cause string    `json:"cause"`
	// Done means that salvage has ended. Until then nothing is accepted.
	Done     bool     `json:"done"`
	Salvaged Salvaged `json:"salvaged"`
	// Lost is how many rows existed but could not be read. More means that unreadable parts may
	// have held further rows.
	Lost int64 `json:"lost"`
	More bool  `json:"more_may_be_lost"`
	// Mended is how many rows were kept with values that could not be read and are now empty.
	Mended int64 `json:"mended,omitempty"`
	// Restored means that a restore has ended the salvage and replaced the file with a backup.
	Restored bool `json:"restored,omitempty"`
}

// Salvaged counts rows that were read and found sound.
type Salvaged struct {
	Pending   int64 `json:"pending"`
	Parked    int64 `json:"parked"`
	Expired   int64 `json:"expired"`
	Final     int64 `json:"final"`  // delivered or discarded
	Broken    int64 `json:"broken"` // parked as undecodable: their content is lost or in doubt
	InboxIDs  int64 `json:"inbox_ids"`
	InboxKept int64 `json:"inbox_kept"`
	Events    int64 `json:"events"`
	Tokens    int64 `json:"tokens"`
	Sites     int64 `json:"sites,omitempty"`

	Notifications int64 `json:"notifications"`
	Channels      int64 `json:"channels"`
	Lists         int64 `json:"lists"`
	Recipients    int64 `json:"recipients"`

	Rows map[string]int64 `json:"rows,omitempty"` // of other tables, by table name
}

// plain counts rows of a table.
func (n *Salvaged) plain(table string, by int64) {
	switch table {
	case "hf_token":
		n.Tokens += by
	case "hf_site":
		n.Sites += by
	case "hf_channel":
		n.Channels += by
	case "hf_recipient":
		n.Recipients += by
	default:
		if n.Rows == nil {
			n.Rows = map[string]int64{}
		}
		n.Rows[table] += by
	}
}

// String describes the damage in a sentence.
func (d *Damage) String() string {
	s := fmt.Sprintf("%s was set aside on %s (%s)", d.File, d.At.Format(time.RFC3339), d.Cause)
	if !d.Done {
		return s + "; it is being salvaged"
	}
	if d.Restored {
		return s + "; a backup was restored instead of salvaging it to the end: what is in it and not in the backup is not delivered"
	}
	lost := fmt.Sprint(d.Lost)
	if d.More {
		lost = fmt.Sprintf("%d or more", d.Lost)
	}
	n := d.Salvaged
	book := ""
	if n.Channels+n.Lists+n.Notifications > 0 {
		book = fmt.Sprintf(", %d notifications, %d channels, %d lists with %d recipients", n.Notifications, n.Channels, n.Lists, n.Recipients)
	}
	mended := ""
	if d.Mended > 0 {
		mended = fmt.Sprintf("; rows of which a value is lost: %d", d.Mended)
	}
	return fmt.Sprintf("%s; salvaged: %d messages, %d inbox ids%s; parked as damaged: %d; rows lost: %s%s", s, n.Pending+n.Parked+n.Expired+n.Final, n.InboxIDs+n.InboxKept, book, n.Broken, lost, mended)
}

const asideInfix = ".damaged-"

// sides are the suffixes of the files of a database.
func sides() []string { return []string{"-wal", "-shm", ""} } // the database last: without its log it must not be opened

// SetAside lists the damaged files in a data folder, oldest first. For a file without a readable
// report it returns what the file's name tells.
func SetAside(dir string) ([]Damage, error) {
	names, err := filepath.Glob(filepath.Join(escapeGlob(dir), "*"+asideInfix+"*"))
	if err != nil {
		return nil, fmt.Errorf("look for damaged files in %s: %w", dir, err)
	}
	var list []Damage
	for _, name := range names {
		if strings.HasSuffix(name, ".json") || strings.HasSuffix(name, "-shm") || strings.HasSuffix(name, ".new") {
			continue
		}
		if base, wal := strings.CutSuffix(name, "-wal"); wal {
			if slices.Contains(names, base) {
				continue
			}
			name = base // only the log was there to set aside
		}
		if strings.HasSuffix(name, partial) {
			continue
		}
		d, err := readDamage(name)
		if err != nil {
			d = &Damage{Done: true, More: true, Cause: "its report is not readable: " + err.Error()}
			_, at, _ := strings.Cut(filepath.Base(name), asideInfix)
			d.At, _ = time.Parse(asideTime, at)
		}
		d.File = name // the file may have been moved since
		list = append(list, *d)
	}
	slices.SortFunc(list, func(a, b Damage) int { return a.At.Compare(b.At) })
	return list, nil
}

func escapeGlob(dir string) string {
	return strings.NewReplacer(`*`, `[*]`, `?`, `[?]`, `[`, `[[]`).Replace(dir)
}

const asideTime = "20060102T150405.000Z"

// Damage lists the files that were set aside for this store and are still beside its file. Moving a
// file away acknowledges it.
func (db *DB) Damage() []Damage {
	all, err := SetAside(filepath.Dir(db.path))
	if err != nil {
		return nil
	}
	return slices.DeleteFunc(all, func(d Damage) bool { return !strings.HasPrefix(d.File, db.path+asideInfix) })
}

func readDamage(file string) (*Damage, error) {
	text, err := os.ReadFile(file + ".json") //nolint:gosec // beside the database
	if err != nil {
		return nil, err
	}
	d := &Damage{}
	return d, json.Unmarshal(text, d)
}

// write replaces the report.
func (d *Damage) write() error {
	text, err := json.MarshalIndent(d, "", "  ")
	if err != nil {
		return err
	}
	if err := writeSynced(d.File+".json.new", append(text, '\n')); err != nil {
		return errors.Join(err, os.Remove(d.File+".json.new"))
	}
	if err := os.Rename(d.File+".json.new", d.File+".json"); err != nil {
		return err
	}
	return syncFolder(d.File)
}

// unfinished finds a file whose salvage has begun and not ended. An unreadable report does not
// tell; SetAside lists its file as one that has lost rows.
func unfinished(path string, log *slog.Logger) (*Damage, error) {
	names, err := filepath.Glob(escapeGlob(path) + asideInfix + "*.json")
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		d, err := readDamage(strings.TrimSuffix(name, ".json"))
		if err != nil {
			log.Error("the report of a damaged file is not readable: whether its salvage has ended is unknown", slog.String("report", name), slog.Any("error", err))
			continue
		}
		if !d.Done {
			d.File = strings.TrimSuffix(name, ".json")
			return d, nil
		}
	}
	return nil, nil
}

// supersede ends the salvage of a damaged file, because a restore replaces the database. It returns
// the file's new name if the file is only now moved there.
func supersede(path string) (moved string, err error) {
	d, err := unfinished(path, slog.New(slog.DiscardHandler))
	if err != nil || d == nil {
		return "", err
	}
	if _, err := os.Lstat(d.File); errors.Is(err, os.ErrNotExist) {
		moved = d.File
	}
	if err := d.rename(path); err != nil {
		return "", err
	}
	d.Done, d.More, d.Restored = true, true, true
	if err := d.write(); err != nil {
		return "", fmt.Errorf("note that %s is not salvaged to the end: %w", d.File, err)
	}
	return moved, nil
}

// begin notes that the file will be set aside, under an unused name.
func begin(path string, cause error) (*Damage, error) {
	now := time.Now().UTC()
	d := &Damage{Cause: cause.Error(), At: now.Truncate(time.Millisecond)}
	for {
		d.File = path + asideInfix + now.Format(asideTime)
		taken := false
		for _, side := range append(sides(), ".json") {
			if _, err := os.Lstat(d.File + side); !errors.Is(err, os.ErrNotExist) {
				taken = true
			}
		}
		if !taken {
			break
		}
		now = now.Add(time.Millisecond)
	}
	if err := d.write(); err != nil {
		return nil, fmt.Errorf("%w; it could not be set aside, because no note of that could be written: %w; correct that (if the disk is full, free as much space as the file has) and start again: nothing was changed",
			cause, err)
	}
	return d, nil
}

// rename moves the file and its sides, unless that is done already. If the file has its new name,
// all is done. If there was only a log and no file, rename makes an empty file to show that. It
// removes the mark before it moves the file: afterwards the mark would be the new file's.
func (d *Damage) rename(path string) error {
	if _, err := os.Lstat(d.File); err == nil {
		return nil // the new file is at path
	}
	for _, side := range sides() {
		if side == "" {
			if err := os.RemoveAll(markOf(path)); err != nil {
				return fmt.Errorf("set %s aside: %w", path, err)
			}
		}
		if _, err := os.Lstat(path + side); errors.Is(err, os.ErrNotExist) {
			continue
		}
		if _, err := os.Lstat(d.File + side); err == nil {
			return fmt.Errorf("set %s aside: %s exists already", path+side, d.File+side)
		}
		// A connection that closes only now has merged the log into the file and deleted it.
		if err := os.Rename(path+side, d.File+side); err != nil && (side == "" || !errors.Is(err, os.ErrNotExist)) {
			return fmt.Errorf("set %s aside: %w", path+side, err)
		}
	}
	f, err := os.OpenFile(d.File, os.O_RDONLY|os.O_CREATE, 0o640) //nolint:gosec // beside the database, for its group
	if err == nil {
		err = errors.Join(f.Close(), syncFolder(path))
	}
	if err != nil {
		return fmt.Errorf("set %s aside: %w", path, err)
	}
	return nil
}

// succeed makes the empty file that takes the place of the damaged one, for the same users.
func (d *Damage) succeed(path string) error {
	if _, err := os.Lstat(path); !errors.Is(err, os.ErrNotExist) {
		return err
	}
	like, err := os.Stat(d.File)
	if err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600) //nolint:gosec // the store's own file
	if err != nil {
		return err
	}
	return errors.Join(f.Chmod(like.Mode().Perm()|0o600), f.Close(), giveTo(path, like))
}

// partial is the suffix of a new file that was itself damaged during a salvage. All its content is
// also in the file that is being salvaged.
const partial = ".partial"

// again makes room for another new file. It deletes an earlier partial file.
func (d *Damage) again(path string) error {
	for _, side := range sides() {
		err := os.RemoveAll(d.File + partial + side)
		if err == nil {
			err = os.Rename(path+side, d.File+partial+side)
		}
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return fmt.Errorf("set %s aside: %w", path+side, err)
		}
	}
	return errors.Join(os.RemoveAll(markOf(path)), syncFolder(path))
}

// writeSynced writes a small file, which is on disk when it returns.
func writeSynced(name string, text []byte) error {
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o640) //nolint:gosec // beside the database, for its group
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	return errors.Join(err, f.Sync(), f.Close())
}
