package doctor

import (
	"context"
	"errors"

	"github.com/holdfast-mq/holdfast/config"
	"github.com/holdfast-mq/holdfast/postgres"
)

// errShared stands in the place of a file's owner.
var errShared = errors.New("the database is shared")

// lookAtServer asks the database that nodes share. Its messages are judged like those of a file.
func lookAtServer(ctx context.Context, store config.Database, o Options, f *Findings) {
	ctx, cancel := context.WithTimeout(ctx, 2*o.Timeout)
	defer cancel()
	s := &ServerFound{Address: store.String(), SSLMode: store.SSLMode(), Remote: store.Remote()}
	s.Inspection, s.Err = postgres.Inspect(ctx, store.DSN())
	f.Server, f.Data, f.Owner.Err = s, "", errShared
	if f.File.Err = s.Err; s.Err == nil {
		f.File.Err = s.Refused
	}
	f.File.Schema, f.File.Newest = s.Schema, s.Newest
	f.File.Admins, f.File.Sites = s.Admins, s.Sites
	f.File.Parked, f.File.Waiting, f.File.Held = s.Parked, s.Waiting, s.Held
}
