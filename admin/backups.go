package admin

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"reflect"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/admin/api"
)

type createBackupInput struct{ Content body }

type createBackupOutput struct{ Body api.Backup }

func (b *builder) backups() {
	handle(b, route{
		method: http.MethodPost, path: "/v1/backups", id: "create-backup", tag: "backups", role: api.Admin,
		summary: "Make a backup",
		description: "Writes a copy of the database to a new file in the folder, while the node works on. The answer comes when the copy has been " +
			"checked and is on disk, which takes as long as the database is large; a request that ends earlier ends the copy.",
		status: http.StatusCreated, slow: true,
		problems: map[api.Sort]string{
			api.Unsupported: "This node cannot copy its database.", api.DiskFull: "The folder's disk has too little room; detail says how much is needed.",
		},
		request: reflect.TypeFor[api.NewBackup](), bodyRequired: true, requestSample: json.RawMessage(`{"folder":"/mnt/backups"}`),
	}, b.createBackup)
}

func (s *Server) createBackup(ctx context.Context, in *createBackupInput) (*createBackupOutput, error) {
	var req api.NewBackup
	faults, p := in.Content.decode(&req)
	if p != nil {
		return nil, p
	}
	if req.Folder == "" && len(faults) == 0 {
		faults = []api.Fault{{Field: "folder", Problem: "is missing; name a folder on the machine of the node"}}
	}
	if len(faults) > 0 {
		return nil, api.Faulty(faults...)
	}
	if s.Backup == nil {
		return nil, api.Unsupported.Problem("this node cannot copy its database")
	}
	path, size, err := s.Backup(ctx, req.Folder)
	switch {
	case errors.Is(err, errors.ErrUnsupported):
		return nil, api.Unsupported.Problem(err.Error())
	case errors.Is(err, holdfast.ErrDiskFull):
		return nil, api.DiskFull.Problem(err.Error())
	case err != nil:
		return nil, s.refuse(ctx, "make a backup", err)
	}
	return &createBackupOutput{api.Backup{Path: path, Size: size}}, nil
}

// patient lets an answer take longer than the server allows others.
func patient(ctx huma.Context, next func(huma.Context)) {
	_, w := humago.Unwrap(ctx)
	_ = http.NewResponseController(w).SetWriteDeadline(time.Time{}) // a recorder in a test has none
	next(ctx)
}
