package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/holdfast-mq/holdfast/config"
	"github.com/holdfast-mq/holdfast/link"
)

func (a *app) enrollCommand(g *global) *cobra.Command {
	var conf link.EnrollConfig
	cmd := &cobra.Command{
		Use:   "enroll CENTRAL [TOKEN]",
		Short: "Enroll this machine as a site at a central node",
		Long: `Enroll this machine as a site at a central node: exchange the token that
"holdfast sites add" printed there for a credential of the site's own, and keep
that in a file that only this user can read. Without TOKEN, it reads the token from
standard input, where other users of the machine cannot see it.

The address is https://; http:// works for the loopback only. If the answer is lost,
the same command with the same token works again.`,
		Example: `  holdfast enroll https://central.example:8420 --file /var/lib/holdfast/credential
  holdfast enroll https://central.example:8420 --ca ca.pem --force <token`,
		Args: args(1, 2, "the address of central, and the token unless it comes on standard input"),
		RunE: func(cmd *cobra.Command, given []string) error {
			conf.URL, conf.Version = given[0], build().Version
			if len(given) == 2 {
				conf.Token = given[1]
			} else {
				token, err := a.readToken()
				if err != nil {
					return err
				}
				conf.Token = token
			}
			return a.enroll(cmd, g, conf)
		},
	}
	f := cmd.Flags()
	f.StringVar(&conf.File, "file", filepath.Join(config.Default().Data, "credential"), "where the credential is kept")
	f.BoolVar(&conf.Force, "force", false, "replace the credential that the file holds")
	f.StringVar(&conf.TLS.CA, "ca", "", "file with the CA of central's certificate, in addition to those that the system trusts")
	f.StringVar(&conf.TLS.Cert, "cert", "", "file with a client certificate, if central asks for one")
	f.StringVar(&conf.TLS.Key, "key", "", "file with its key")
	return cmd
}

// readToken reads a line.
func (a *app) readToken() (string, error) {
	if f, ok := a.stdin.(*os.File); ok {
		if info, err := f.Stat(); err == nil && info.Mode()&os.ModeCharDevice != 0 {
			a.note("token: ")
		}
	}
	line, err := bufio.NewReader(io.LimitReader(a.stdin, 4096)).ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return "", fmt.Errorf("read the token from standard input: %w", err)
	}
	if line = strings.TrimSpace(line); line == "" {
		return "", usage(errors.New("no token: give it on standard input, or after the address"))
	}
	return line, nil
}

func (a *app) enroll(cmd *cobra.Command, g *global, conf link.EnrollConfig) error {
	if err := os.MkdirAll(filepath.Dir(conf.File), 0o750); err != nil {
		return fmt.Errorf("make the folder of the credential: %w", err)
	}
	ctx, cancel := context.WithTimeout(cmd.Context(), g.timeout)
	defer cancel()
	id, err := link.Enroll(ctx, conf)
	if err != nil {
		return ofEnrolment(err)
	}
	if g.json {
		return printJSON(a.stdout, struct {
			Site string `json:"site"`
			File string `json:"file"`
		}{id.Site, conf.File})
	}
	_, err = fmt.Fprintf(a.stdout, "enrolled as site %s; the credential is in %s\n", id.Site, conf.File)
	return err
}

// ofEnrolment gives an error of an enrolment its exit code.
func ofEnrolment(err error) error {
	switch {
	case errors.Is(err, link.ErrEnrolled):
		return &codedError{err, exitConflict}
	case errors.Is(err, link.ErrToken):
		return &codedError{err, exitRefused}
	case errors.Is(err, link.ErrUnreachable):
		return &codedError{err, exitUnreachable}
	}
	return err
}
