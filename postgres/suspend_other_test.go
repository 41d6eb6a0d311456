//go:build !unix

package postgres_test

import (
	"errors"
	"os"
)

// suspend has no counterpart where there are no signals.
func suspend(*os.Process) error { return errors.ErrUnsupported }

func resume(*os.Process) error { return errors.ErrUnsupported }
