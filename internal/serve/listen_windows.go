package serve

import (
	"context"
	"errors"
	"os"

	"golang.org/x/sys/windows"
)

func isInUse(err error) bool { return errors.Is(err, windows.WSAEADDRINUSE) }

func isRefused(err error) bool { return errors.Is(err, windows.WSAECONNREFUSED) }

// lockFolder only checks that the folder exists: Windows does not lock folders.
func lockFolder(_ context.Context, dir string) (unlock func(), err error) {
	if _, err := os.Stat(dir); err != nil {
		return nil, err
	}
	return func() {}, nil
}
