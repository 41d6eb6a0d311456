package namedfile

import "os"

// SyncFolder makes new names in a folder durable, and names that are gone, as far as the system can: Windows
// cannot. What a power cut may undo in spite of it, the caller must bear.
func SyncFolder(folder string) {
	d, err := os.Open(folder) //nolint:gosec // of a file that the configuration or a person names
	if err != nil {
		return
	}
	_ = d.Sync()
	_ = d.Close()
}
