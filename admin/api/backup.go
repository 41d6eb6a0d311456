package api

// NewBackup is what POST /v1/backups takes.
type NewBackup struct {
	Folder string `json:"folder" minLength:"1" maxLength:"4096" doc:"A folder that exists on the machine of the node, as an absolute path." example:"/mnt/backups"`
}

// Backup is a copy of the database that has been made.
type Backup struct {
	Path string `json:"path" doc:"The file, on the machine of the node." example:"/mnt/backups/holdfast-20260102T030405Z.db"`
	Size int64  `json:"size" doc:"Bytes."`
}
