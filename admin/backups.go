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
)

// NewBackup is what POST /v1/backups takes.
type NewBackup struct {
	Folder string `json:"folder" minLength:"1" maxLength:"4096" doc:"A folder that exists on the machine of the node, as an absolute path." example:"/mnt/backups"`
}

// Backup is a copy of the database that has been made.
type Backup struct {
	Path string `json:"path" doc:"The file, on the machine of the node." example:"/mnt/backups/holdfast-20260102T030405Z.db"`
	Size int64  `json:"size" doc:"Bytes."`
}

type createBackupInput struct{ Content body }

type createBackupOutput struct{ Body Backup }

func (b *builder) backups() {
	handle(b, route{
		method: http.MethodPost, path: "/v1/backups", id: "create-backup", tag: "backups", role: Admin,
		summary: "Make a backup",
		description: "Writes a copy of the database to a new file in the folder, while the node works on. The answer comes when the copy has been " +
			"checked and is on disk, which takes as long as the database is large; a request that ends earlier ends the copy.",
		status: http.StatusCreated, slow: true,
		problems: map[kind]string{
			kindUnsupported: "This node cannot copy its database.", kindDiskFull: "The folder's disk has too little room; detail says how much is needed.",
		},
		request: reflect.TypeFor[NewBackup](), bodyRequired: true, requestSample: json.RawMessage(`{"folder":"/mnt/backups"}`),
	}, b.createBackup)
}

func (s *Server) createBackup(ctx context.Context, in *createBackupInput) (*createBackupOutput, error) {
	var req NewBackup
	faults, p := in.Content.decode(&req)
	if p != nil {
		return nil, p
	}
	if req.Folder == "" && len(faults) == 0 {
		faults = []Fault{{Field: "folder", Problem: "is missing; name a folder on the machine of the node"}}
	}
	if len(faults) > 0 {
		return nil, invalid(faults...)
	}
	if s.Backup == nil {
		return nil, kindUnsupported.problem("this node cannot copy its database")
	}
	path, size, err := s.Backup(ctx, req.Folder)
	switch {
	case errors.Is(err, errors.ErrUnsupported):
		return nil, kindUnsupported.problem(err.Error())
	case errors.Is(err, holdfast.ErrDiskFull):
		return nil, kindDiskFull.problem(err.Error())
	case err != nil:
		return nil, s.refuse(ctx, "make a backup", err)
	}
	return &createBackupOutput{Backup{path, size}}, nil
}

// patient lets an answer take longer than the server allows others.
func patient(ctx huma.Context, next func(huma.Context)) {
	_, w := humago.Unwrap(ctx)
	_ = http.NewResponseController(w).SetWriteDeadline(time.Time{}) // a recorder in a test has none
	next(ctx)
}
