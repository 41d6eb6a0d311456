package main

import (
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/holdfast-mq/holdfast/doctor"
)

func (a *app) doctorCommand(g *global) *cobra.Command {
	f := &configFlags{}
	var timeout time.Duration
	var full bool
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Find what is wrong with a node, and say what to do",
		Long: `Examine the node of this machine, whether it runs or not: its configuration, who
owns its data, whether the database is sound and commits are durable, the disk, the
clock, and whether each destination can be reached and accepts this node's signature.
Give it the flags of serve.

It changes nothing, delivers nothing and does not disturb a running node. To measure
the disk, it writes a small file into the data folder, which is gone when it ends.
Run it as the user of the node.

The exit code is 0 if all is well, 7 if something needs attention, and 8 if something
does not work.`,
		Example: `  holdfast doctor --config /etc/holdfast/holdfast.yaml
  holdfast doctor --config /etc/holdfast/holdfast.yaml --full --json`,
		Args: args(0, 0, "none"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if timeout <= 0 {
				return usage(fmt.Errorf("--timeout %s: must be longer than 0", timeout))
			}
			o, err := a.doctorOptions(cmd, g, f)
			if err != nil {
				return err
			}
			o.Timeout, o.Full = timeout, full
			report := doctor.Examine(cmd.Context(), o)
			if g.json {
				err = printJSON(a.stdout, report)
			} else {
				_, err = io.WriteString(a.stdout, plain(report.String()))
			}
			return errors.Join(err, verdictOf(report.Status))
		},
	}
	f.add(cmd)
	cmd.Flags().DurationVar(&timeout, "timeout", 5*time.Second, "longest time for each question, and for the quick check of the database")
	cmd.Flags().BoolVar(&full, "full", false, "check the whole database, however long it takes")
	return cmd
}

func (a *app) doctorOptions(cmd *cobra.Command, g *global, f *configFlags) (doctor.Options, error) {
	token, err := a.secret(g)
	if err != nil {
		return doctor.Options{}, err
	}
	trust, err := a.trust(g)
	if err != nil {
		return doctor.Options{}, err
	}
	b := build()
	o := doctor.Options{Token: token, TLS: trust, Version: b.Version, Commit: b.Commit, Data: f.over.Data, URL: a.getenv(envURL)}
	if cmd.Flags().Changed("url") {
		o.URL = g.url
	}
	if o.Data == "" {
		o.Data = a.getenv("HOLDFAST_DATA")
	}
	// Faults are part of the report.
	o.ConfigFile, o.Config, o.Warnings, o.ConfigError = a.readWhole(cmd, f)
	return o, nil
}

func verdictOf(s doctor.Status) error {
	switch s {
	case doctor.Warning:
		return verdict(exitWarnings)
	case doctor.Failing:
		return verdict(exitFailing)
	case doctor.OK, doctor.Skipped:
	}
	return nil
}
