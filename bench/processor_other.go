//go:build !unix

package main

import (
	"errors"
	"time"
)

func processor() (time.Duration, error) {
	return 0, errors.New("processor time is read on Unix only")
}
