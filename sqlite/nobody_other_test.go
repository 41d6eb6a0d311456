//go:build !unix

package sqlite_test

import "testing"

func asNobody(*testing.T) bool { return false }
