package main

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net/http"

	"github.com/spf13/cobra"

	"github.com/holdfast-mq/holdfast/admin/api"
	"github.com/holdfast-mq/holdfast/admin/client"
	"github.com/holdfast-mq/holdfast/config"
	"github.com/holdfast-mq/holdfast/node"
)

// The exit codes; docs/guide/cli.md promises them.
const (
	exitOK          = 0
	exitFailure     = 1 // may succeed later
	exitUsage       = 2 // the command line, the configuration or a value is wrong
	exitNotFound    = 3
	exitConflict    = 4 // the present state does not allow it, or the name is taken
	exitUnreachable = 5
	exitRefused     = 6 // the token is missing, or its rights do not allow it
	exitWarnings    = 7 // doctor or audit verify found something that needs attention
	exitFailing     = 8 // doctor found something that does not work, or audit verify a broken log
)

// verdict is the exit code of a command that has already printed everything.
type verdict int

func (verdict) Error() string { return "something needs attention" }

// usageError is a fault of the command line.
type usageError struct{ err error }

func (e *usageError) Error() string { return e.err.Error() }
func (e *usageError) Unwrap() error { return e.err }

func usage(err error) error { return &usageError{err} }

// codedError is an error whose exit code the command knows.
type codedError struct {
	err  error
	code int
}

func (e *codedError) Error() string { return e.err.Error() }
func (e *codedError) Unwrap() error { return e.err }

// several holds errors that are each reported separately.
type several []error

func (s several) Error() string   { return errors.Join(s...).Error() }
func (s several) Unwrap() []error { return s }

// exitCode returns the exit code of an error. For several errors, the first one counts.
func exitCode(err error) int {
	if all, ok := errors.AsType[several](err); ok {
		err = all[0]
	}
	if c, ok := errors.AsType[*codedError](err); ok {
		return c.code
	}
	if p, ok := errors.AsType[*api.Problem](err); ok {
		if p.Message != "" { // the destination refused it
			return exitConflict
		}
		return problemCode(p.Status)
	}
	if code, ok := errors.AsType[verdict](err); ok {
		return int(code)
	}
	if _, ok := errors.AsType[*usageError](err); ok {
		return exitUsage
	}
	if _, ok := errors.AsType[*config.Error](err); ok {
		return exitUsage
	}
	if errors.Is(err, client.ErrUnreachable) {
		return exitUnreachable
	}
	return exitFailure
}

func problemCode(status int) int {
	switch status {
	case http.StatusBadRequest, http.StatusRequestEntityTooLarge, http.StatusUnsupportedMediaType, http.StatusUnprocessableEntity:
		return exitUsage
	case http.StatusNotFound:
		return exitNotFound
	case http.StatusConflict, http.StatusPreconditionFailed:
		return exitConflict
	case http.StatusUnauthorized, http.StatusForbidden:
		return exitRefused
	}
	return exitFailure
}

// ofStores gives an error about a store its exit code.
func ofStores(err error) error {
	if _, ok := errors.AsType[*config.Error](err); ok {
		return err // a missing file of the configuration, not a missing store
	}
	switch node.Why(err) {
	case node.InUse, node.Barred:
		return &codedError{err, exitConflict}
	case node.Absent:
		return &codedError{err, exitNotFound}
	case node.Unfit:
		return &codedError{err, exitUsage}
	case node.Forbidden:
		return &codedError{err, exitRefused}
	case node.Unexplained:
	}
	return err
}

// report prints an error in one line, and what to do in the line below.
func report(w io.Writer, cmd *cobra.Command, err error) {
	if all, ok := errors.AsType[several](err); ok {
		for _, one := range all {
			report(w, cmd, one)
		}
		return
	}
	if _, ok := errors.AsType[verdict](err); ok {
		return
	}
	_, _ = fmt.Fprintf(w, "holdfast: %s\n", plain(err.Error()))
	if advice := adviceFor(cmd, err); advice != "" {
		_, _ = fmt.Fprintf(w, "  %s\n", advice)
	}
}

func adviceFor(cmd *cobra.Command, err error) string {
	if p, ok := errors.AsType[*api.Problem](err); ok {
		switch p.Type {
		case api.Unauthorized.Problem("").Type:
			return "give it with --token-file, --token or " + envToken
		case api.NoRoute.Problem("").Type:
			return "the node has another role, or another version: see holdfast status; sites and their calls are asked of a central"
		}
		return ""
	}
	if errors.Is(err, client.ErrUnreachable) {
		unknown, isUnknown := errors.AsType[x509.UnknownAuthorityError](err)
		switch {
		case errors.Is(err, client.ErrScheme):
			return ""
		case isUnknown && unknown.Cert != nil:
			return "name the file with the CA of its certificate, or the certificate itself, with --ca or " + envCA
		case errors.Is(err, context.DeadlineExceeded):
			return "the node did not answer in time; wait longer with --timeout"
		}
		return "start it with: holdfast serve; or name another with --url or " + envURL
	}
	if _, ok := errors.AsType[*usageError](err); ok && cmd != nil {
		return "see: " + cmd.CommandPath() + " --help"
	}
	return ""
}
