package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// syncRate measures how many times per second 4 KiB can be written and synced.
func syncRate(dir string, d time.Duration) (perSecond float64, err error) {
	f, err := os.Create(filepath.Join(dir, "sync-probe"))
	if err != nil {
		return 0, fmt.Errorf("probe disk: %w", err)
	}
	defer func() { err = errors.Join(err, f.Close(), os.Remove(f.Name())) }()
	page := make([]byte, 4096)
	n, began := 0, time.Now()
	for time.Since(began) < d {
		if _, err := f.WriteAt(page, 0); err != nil {
			return 0, fmt.Errorf("probe disk: %w", err)
		}
		if err := f.Sync(); err != nil {
			return 0, fmt.Errorf("probe disk: %w", err)
		}
		n++
	}
	return float64(n) / time.Since(began).Seconds(), nil
}

// copyDir copies the files of one flat directory into another.
func copyDir(from, to string) error {
	if err := os.CopyFS(to, os.DirFS(from)); err != nil {
		return fmt.Errorf("copy prepared files: %w", err)
	}
	return nil
}
