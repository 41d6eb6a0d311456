package doctor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/holdfast-mq/holdfast/config"
	"github.com/holdfast-mq/holdfast/internal/namedfile"
	"github.com/holdfast-mq/holdfast/sqlite"
)

// lookAtData examines the disk. The order matters: it measures the sync speed before it reads the database.
func lookAtData(ctx context.Context, o Options, f *Findings) {
	folder, err := os.Stat(f.Data)
	if err != nil {
		f.Folder.Err = cause(err)
		f.Owner.Err = fs.ErrNotExist
		f.File.Err = f.Folder.Err
		return
	}
	f.Folder = FolderFound{Exists: true, IsDir: folder.IsDir(), Mode: folder.Mode(), Shut: shut(f.Data)}
	if !folder.IsDir() {
		f.File.Err, f.Owner.Err = fs.ErrNotExist, fs.ErrNotExist
		return
	}
	if runtime.GOOS == "windows" {
		f.Folder.Mode = 0 // its bits mean nothing there
	}
	f.Owner = ownerFound(database(f.Data))
	f.Disk = diskFound(f.Data)
	f.Sync, f.Folder.Write = measureSync(ctx, f.Data, f.Disk)
	f.Files = append(f.Files, fileModes(map[string]string{"the database": database(f.Data)})...)
	f.Damaged, _ = sqlite.SetAside(f.Data) // if the folder cannot be listed, that is already reported
	backups := filepath.Join(f.Data, "backups")
	if o.Config != nil {
		backups = o.Config.BackupFolder()
	}
	f.Backups = backupsFound(backups)
	f.File = fileContent(ctx, database(f.Data), o)
}

func fileContent(ctx context.Context, path string, o Options) FileContent {
	c := FileContent{Full: o.Full}
	if s, err := os.Stat(path); err == nil {
		c.Size = s.Size()
	}
	if s, err := os.Stat(path + "-wal"); err == nil {
		c.Log = s.Size()
	}
	look := sqlite.InspectOptions{Within: o.Timeout, Full: o.Full}
	bounded, cancel := context.WithCancel(ctx)
	defer cancel()
	if !o.Full {
		// Twice: the reading before the check is quick, but must not hang either.
		bounded, cancel = context.WithTimeout(ctx, 2*o.Timeout)
		defer cancel()
	}
	c.Inspection, c.Err = sqlite.Inspect(bounded, path, look)
	return c
}

func ownerFound(path string) OwnerFound {
	var o OwnerFound
	o.Holder, o.Err = sqlite.HolderOf(path)
	host, err := os.Hostname()
	o.Here = err == nil && o.Host == host
	o.Alive = o.Here && o.PID > 0 && isAlive(o.PID)
	return o
}

func backupsFound(dir string) BackupsFound {
	var b BackupsFound
	entries, err := os.ReadDir(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return b
	case err != nil:
		b.Err = err
		return b
	}
	b.Exists = true
	for _, e := range entries {
		info, err := e.Info()
		if err != nil || !info.Mode().IsRegular() || info.Size() == 0 || strings.HasPrefix(e.Name(), ".") {
			continue // a backup that is still being written does not count
		}
		b.Count++
		if info.ModTime().After(b.At) {
			b.Newest, b.At = e.Name(), info.ModTime()
		}
	}
	return b
}

// secretFiles returns the files of secrets and keys that the configuration names.
func secretFiles(c *config.Config) []FileFound {
	if c == nil {
		return nil
	}
	what := map[string]string{}
	add := func(name, path string) {
		if path != "" {
			what[name] = path
		}
	}
	add("the key of the certificate", c.TLS.Key)
	add("the address of the database", c.Store.File())
	add("the key of secrets", c.Secrets.Key.File())
	for i, s := range c.Secrets.Former {
		add(fmt.Sprintf("former key %d of secrets", i+1), s.File())
	}
	for name, d := range c.Destinations {
		add("the secret of destination "+name, d.Secret.File())
		if d.Foreign != nil {
			for what, path := range d.Foreign.Safety().Private {
				add(what+" destination "+name, path)
			}
		}
	}
	for name, s := range c.Receive.Sources {
		for i, secret := range s.Secrets {
			add(fmt.Sprintf("secret %d of source %s", i+1, name), secret.File())
		}
	}
	return fileModes(what)
}

func fileModes(what map[string]string) []FileFound {
	if runtime.GOOS == "windows" {
		return nil
	}
	var list []FileFound
	seen := map[string]bool{}
	for _, name := range slices.Sorted(maps.Keys(what)) {
		path := what[name]
		if seen[path] {
			continue
		}
		seen[path] = true
		f := FileFound{What: name, Path: path}
		info, err := os.Stat(path)
		if f.Err = cause(err); err == nil {
			f.Mode, f.Shut = info.Mode(), shut(path)
		}
		list = append(list, f)
	}
	slices.SortStableFunc(list, func(a, b FileFound) int { return cmp.Compare(a.What, b.What) })
	return list
}

// shut reports whether a folder above path keeps out every user who neither owns it nor is in its group.
func shut(path string) bool {
	for dir := filepath.Dir(path); ; dir = filepath.Dir(dir) {
		if info, err := os.Stat(dir); err == nil && info.Mode().Perm()&0o001 == 0 {
			return true
		}
		if dir == filepath.Dir(dir) {
			return false
		}
	}
}

func certFound(t config.TLS) *CertFound {
	if t.Cert == "" {
		return nil
	}
	c := &CertFound{Path: t.Cert}
	pair, err := namedfile.KeyPair(t.Cert, t.Key)
	if err != nil {
		c.Err = err
		return c
	}
	c.Until = pair.Leaf.NotAfter
	return c
}

// cause strips the path from an error; the caller names it.
func cause(err error) error {
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		return e.Err
	}
	return err
}
