package doctor

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"syscall"
	"time"
)

const (
	syncs     = 50
	syncBlock = 4096
	// syncsWithin bounds the measurement on a very slow disk.
	syncsWithin = 3 * time.Second
)

// measureSync appends blocks to its own file and syncs after each, as a commit does. write says why no file
// could be made.
func measureSync(ctx context.Context, dir string, d DiskFound) (s SyncFound, write error) {
	const full = "there is no room for it"
	file, err := os.CreateTemp(dir, ".holdfast-doctor-*")
	if errors.Is(err, syscall.ENOSPC) {
		return SyncFound{Skipped: full}, nil
	}
	if err != nil {
		return SyncFound{Skipped: "nothing can be written"}, cause(err)
	}
	// Where the system allows it, remove the name before the first block is written: then nothing stays
	// behind, however this ends.
	gone := os.Remove(file.Name()) == nil
	defer func() {
		_ = file.Close() // nobody will read it
		if !gone {
			_ = os.Remove(file.Name()) // if it stays, the next look at the folder shows it
		}
	}()
	if d.Err == nil && d.Free < noneFree {
		return SyncFound{Skipped: full}, nil
	}
	block := make([]byte, syncBlock)
	times := make([]time.Duration, 0, syncs)
	for started := time.Now(); len(times) < syncs && ctx.Err() == nil && (len(times) < 3 || time.Since(started) < syncsWithin); {
		if _, err := file.Write(block); err != nil {
			return SyncFound{Err: fmt.Errorf("write a block: %w", cause(err))}, nil
		}
		begun := time.Now()
		if err := syncData(file); err != nil {
			return SyncFound{Err: fmt.Errorf("sync a block: %w", cause(err))}, nil
		}
		times = append(times, time.Since(begun))
	}
	if len(times) == 0 {
		return SyncFound{Skipped: "stopped before it began"}, nil
	}
	slices.Sort(times)
	return SyncFound{Count: len(times), Median: times[len(times)/2], P99: times[(len(times)*99-1)/100]}, nil
}
