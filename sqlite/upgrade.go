package sqlite

import (
	"context"
	"errors"
	"io/fs"
)

// SchemaStatus returns the number of the last migration of the file at path, and of the last one
// that this release has. have is 0 if there is no file, or no table of this package. SchemaStatus
// changes nothing, whether or not another process owns the file.
func SchemaStatus(ctx context.Context, path string) (have, want int, err error) {
	in, err := Inspect(ctx, path, InspectOptions{})
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	return in.Schema, len(migrations()), err
}

// Migrate brings the tables of the file at path up to this release, as Open does. It returns their
// number before and after. ErrOwned means that another process owns the file.
func Migrate(ctx context.Context, path string, o Options) (from, to int, err error) {
	db, err := Open(ctx, path, o)
	if err != nil {
		return 0, 0, err
	}
	return db.schemaWas, len(migrations()), db.Close()
}
