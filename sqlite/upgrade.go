package sqlite

import (
	"context"
	"errors"
	"io/fs"
)

// SchemaStatus tells the number of the last migration that the file at path
// has, 0 where there is no file or no table of ours, and of the last that this
// release has. It changes nothing, whether or not another process owns it.
func SchemaStatus(ctx context.Context, path string) (have, want int, err error) {
	in, err := Inspect(ctx, path, InspectOptions{})
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	return in.Schema, len(migrations()), err
}

// Migrate brings the tables of the file at path up to this release, as Open
// does, and tells which numbers they had before and have now. ErrOwned says
// that another process has the file.
func Migrate(ctx context.Context, path string, o Options) (from, to int, err error) {
	db, err := Open(ctx, path, o)
	if err != nil {
		return 0, 0, err
	}
	return db.schemaWas, len(migrations()), db.Close()
}
