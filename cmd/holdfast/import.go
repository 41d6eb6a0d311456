package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/holdfast-mq/holdfast/admin/client"
	"github.com/holdfast-mq/holdfast/cmd/holdfast/internal/opennotificaties"
)

func (a *app) importCommand(g *global) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "import",
		Short: "Take over what another system was set up with",
		Args:  cobra.ArbitraryArgs, RunE: group,
	}
	i := &imports{app: a, global: g}
	cmd.AddCommand(i.notificaties())
	return cmd
}

// imports takes over a file of Open Notificaties.
type imports struct {
	*app
	*global
	owner, secrets string
	dry            bool
}

func (i *imports) notificaties() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "notificaties FILE",
		Short: "Make the channels and subscriptions of a setup file of Open Notificaties",
		Long: `Make the channels and subscriptions of a file with which Open Notificaties is set up
(setup_configuration), take over its schedule of retries, and print what the configuration of the node must hold besides.
Subscriptions keep their UUIDs, so that the URLs that clients have stored stay good.

A block counts only if its flag enables it. {value_from: {env: NAME}} takes a value
from a variable of this program. If anything is wrong, each fault is named with its
line, and nothing is changed. What the file does not say of a topic or subscription
stays as it is. To run the command again changes nothing more.

No secret is printed. --secrets names a folder where those of clients are written, each
in a file of its own that only you can read.`,
		Example: `  holdfast import notificaties setup.yaml --dry-run
  holdfast import notificaties setup.yaml --secrets /etc/holdfast/clients`,
		Args: args(1, 1, "the file"),
		RunE: func(cmd *cobra.Command, given []string) error {
			text, err := i.readInput(given[0])
			if err != nil {
				return err
			}
			file, err := opennotificaties.Read(given[0], text, i.env.Lookup)
			if err != nil {
				return usage(err)
			}
			return i.run(cmd, file)
		},
	}
	flags := cmd.Flags()
	flags.BoolVar(&i.dry, "dry-run", false, "only check the file, and say what would change")
	flags.StringVar(&i.owner, "owner", "", "id of the client that may change the subscriptions over the Notificaties API; default: none may, as at Open Notificaties")
	flags.StringVar(&i.secrets, "secrets", "", "folder for the secrets of clients")
	return cmd
}

// imported is what an import found or did.
type imported struct {
	DryRun        bool     `json:"dryRun,omitempty"`
	Changes       []change `json:"changes"`
	Notes         []string `json:"notes,omitempty"`
	Configuration string   `json:"configuration,omitempty"` // in YAML
}

// change is what becomes of one topic, subscription or the schedule.
type change struct {
	Kind   string   `json:"kind"`
	Name   string   `json:"name"`
	Change string   `json:"change"` // new, changed or same
	Fields []string `json:"fields,omitempty"`

	apply func(ctx context.Context) error
}

func (i *imports) run(cmd *cobra.Command, file *opennotificaties.File) error {
	node, err := i.client(cmd, i.global)
	if err != nil {
		return err
	}
	p := &importing{imports: i, node: node, file: file}
	out := imported{DryRun: i.dry, Changes: []change{}}
	if out.Changes, err = p.plan(cmd.Context()); err != nil {
		return err
	}
	if out.Configuration, err = i.configuration(file); err != nil {
		return err
	}
	for n := 0; n < len(out.Changes) && !i.dry; n++ {
		c := &out.Changes[n]
		if c.Change == "same" {
			continue
		}
		if err := p.within(cmd.Context(), c.apply); err != nil {
			return fmt.Errorf("%s %s: %w; what stands before it in the file is done: run the command again for the rest", c.Kind, c.Name, err)
		}
	}
	for _, n := range file.Notes {
		out.Notes = append(out.Notes, fmt.Sprintf("line %d: %s", n.Line, n.Text))
	}
	if i.json {
		return printJSON(i.stdout, out)
	}
	return printImported(i.stdout, &out)
}

// importing finds what changes.
type importing struct {
	*imports
	node   *client.Client
	file   *opennotificaties.File
	faults several
}

// within runs one request, within the time of one answer.
func (p *importing) within(ctx context.Context, f func(ctx context.Context) error) error {
	if p.timeout <= 0 {
		return usage(fmt.Errorf("--timeout %s: must be longer than 0", p.timeout))
	}
	ctx, cancel := context.WithTimeout(ctx, p.timeout)
	defer cancel()
	return f(ctx)
}

// plan asks the node about each part of the file. The error has all faults that it finds.
func (p *importing) plan(ctx context.Context) ([]change, error) {
	all := []change{}
	known := map[string]bool{}
	if err := p.within(ctx, func(ctx context.Context) error {
		topics, err := p.node.Topics().List(ctx)
		for _, t := range topics {
			known[t.Name] = true
		}
		return err
	}); err != nil {
		return nil, err
	}
	if s := p.file.Schedule; s != nil {
		if err := p.within(ctx, func(ctx context.Context) error { return p.schedule(ctx, s, &all) }); err != nil {
			return nil, err
		}
	}
	for n := range p.file.Channels {
		one := &p.file.Channels[n]
		known[one.Name] = true
		if err := p.within(ctx, func(ctx context.Context) error { return p.channel(ctx, one, &all) }); err != nil {
			return nil, err
		}
	}
	for n := range p.file.Subscriptions {
		one := &p.file.Subscriptions[n]
		for _, g := range one.Groups {
			if !known[g.Channel] {
				p.fault(g.Path+".naam", g.Channel, "is no channel: neither the file nor the node has it")
			}
		}
		if err := p.within(ctx, func(ctx context.Context) error { return p.subscription(ctx, one, &all) }); err != nil {
			return nil, err
		}
	}
	if len(p.faults) > 0 {
		return nil, p.faults
	}
	return all, nil
}

func (p *importing) fault(path, value, problem string) {
	p.faults = append(p.faults, usage(errors.New(p.file.Fault(path, value, problem).String())))
}

func printImported(w io.Writer, all *imported) error {
	if err := listing(w, []string{"KIND", "NAME", "CHANGE", "FIELDS"}, all.Changes, func(c *change) []string {
		return []string{c.Kind, c.Name, c.Change, strings.Join(c.Fields, ", ")}
	}); err != nil {
		return err
	}
	var b strings.Builder
	if all.DryRun {
		b.WriteString("\nnothing was changed: this was a dry run\n")
	}
	if len(all.Notes) > 0 {
		b.WriteString("\n")
	}
	for _, n := range all.Notes {
		b.WriteString(plain(n) + "\n")
	}
	if all.Configuration != "" {
		b.WriteString("\nthe configuration of the node must hold:\n\n" + plain(all.Configuration))
	}
	if _, err := io.WriteString(w, b.String()); err != nil {
		return fmt.Errorf("print: %w", err)
	}
	return nil
}
