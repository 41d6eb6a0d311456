package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/holdfast-mq/holdfast/admin/api"
	"github.com/holdfast-mq/holdfast/admin/client"
	"github.com/holdfast-mq/holdfast/node"
)

func (a *app) backupCommand(g *global) *cobra.Command {
	var data string
	cmd := &cobra.Command{
		Use:   "backup FOLDER",
		Short: "Copy the database into a folder",
		Long: `Copy the database of the node into a new file in the folder, while the node
works on. The copy is checked, and is on disk when its name is printed. The
folder must exist on the machine that the node runs on.

With --data it copies the database of a node that does not run.

A node makes backups by itself, too; see "backup" in the configuration. A copy
of a large database takes long; --timeout ends it.`,
		Example: `  holdfast backup /mnt/backups
  holdfast backup . --json
  holdfast backup /mnt/backups --data /var/lib/holdfast`,
		Args: args(1, 1, "a folder"),
		RunE: func(cmd *cobra.Command, given []string) error {
			made, err := a.backup(cmd, *g, data, given[0])
			switch {
			case err != nil:
				return err
			case g.json:
				return printJSON(a.stdout, made)
			}
			_, err = fmt.Fprintln(a.stdout, made.Path)
			return err
		},
	}
	cmd.Flags().StringVar(&data, "data", "", "data folder of a node that does not run, instead of asking a running node")
	return cmd
}

func (a *app) backup(cmd *cobra.Command, g global, data, folder string) (made api.Backup, err error) {
	if folder, err = filepath.Abs(folder); err != nil {
		return made, usage(err)
	}
	if data == "" {
		if !cmd.Flags().Changed("timeout") {
			g.timeout = 24 * time.Hour
		}
		err = a.ask(cmd, &g, func(ctx context.Context, c *client.Client) error {
			made, err = c.Backup(ctx, folder)
			return err
		})
		return made, err
	}
	if cmd.Flags().Changed("url") {
		return made, usage(errors.New("--data and --url exclude each other: name a folder or a node"))
	}
	err = a.untilTold(cmd.Context(), func(ctx context.Context) error {
		made.Path, made.Size, err = node.Backup(ctx, data, folder)
		return err
	})
	if errors.Is(err, node.ErrRunning) {
		err = fmt.Errorf("%w; to ask a running node, leave --data out", err)
	}
	return made, ofStores(err)
}

// restored is the JSON output of a restore.
type restored struct {
	Path string `json:"path"`
	Kept string `json:"kept,omitempty"`
	Size int64  `json:"size"`

	Broken []string `json:"broken,omitempty"` // the first of the messages that are damaged in the backup
}

func (a *app) restoreCommand(g *global) *cobra.Command {
	var data string
	var broken bool
	cmd := &cobra.Command{
		Use:   "restore FILE",
		Short: "Put a backup in the place of a node's database",
		Long: `Put a backup in the place of the database in a data folder. The node must not
run. The backup is checked first, each message and answer by its hash; one that is damaged,
or of a newer release, changes nothing. With --damaged one is restored of which
nothing but messages and answers is damaged: the node parks or withholds those. What stood in the data folder is kept there under another
name, and can be restored in the same way.

What was accepted after the backup was made is not in it. What was delivered
after that is delivered again, with the same ids.`,
		Example: `  holdfast restore /mnt/backups/holdfast-20260102T030405Z.db --data /var/lib/holdfast`,
		Args:    args(1, 1, "a backup"),
		RunE: func(cmd *cobra.Command, given []string) error {
			if data == "" {
				return usage(errors.New("--data is missing: name the data folder whose database is replaced"))
			}
			var r restored
			err := a.untilTold(cmd.Context(), func(ctx context.Context) error {
				done, err := node.Restore(ctx, given[0], data, broken)
				r = restored{Path: done.Path, Kept: done.Kept, Size: done.Size}
				for _, row := range done.Rows.Rows {
					r.Broken = append(r.Broken, row.String())
				}
				return err
			})
			switch {
			case err != nil:
				return ofStores(a.named(err))
			case g.json:
				return printJSON(a.stdout, r)
			}
			return a.printRestored(r, given[0])
		},
	}
	cmd.Flags().StringVar(&data, "data", "", "data folder of the node, which must not run; it is made when it is missing")
	cmd.Flags().BoolVar(&broken, "damaged", false, "restore the backup although messages or answers in it are damaged: those are parked, not sent")
	return cmd
}

// named lists the messages because of which a restore was refused, and says what to do.
func (a *app) named(err error) error {
	broken, ok := errors.AsType[*node.BrokenError](err)
	if !ok {
		return err
	}
	for _, row := range broken.Check.Rows {
		a.note("damaged: %s\n", plain(row.String()))
	}
	return fmt.Errorf("%w; nothing was changed: restore another backup, or this one with --damaged, and the node parks those messages", err)
}

func (a *app) printRestored(r restored, file string) error {
	if _, err := fmt.Fprintf(a.stdout, "restored %s from %s, %d bytes\n", plain(r.Path), plain(file), r.Size); err != nil {
		return err
	}
	if r.Kept != "" {
		if _, err := fmt.Fprintf(a.stdout, "what was there is kept as %s\n", plain(r.Kept)); err != nil {
			return err
		}
	}
	for _, row := range r.Broken {
		a.note("damaged, and not sent: %s\n", plain(row))
	}
	a.note("what was delivered after the backup was made will be delivered again, with the same ids\n")
	return nil
}
