package main

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/holdfast-mq/holdfast/admin/api"
	"github.com/holdfast-mq/holdfast/admin/client"
	"github.com/holdfast-mq/holdfast/internal/keyring"
	"github.com/holdfast-mq/holdfast/internal/namedfile"
)

func (a *app) keyringCommand(g *global) *cobra.Command {
	cmd := &cobra.Command{
		Use: "keys", Aliases: []string{"key"},
		Short: "Create, list and change the keys that secrets are sealed with",
		Long: `Create, list and change the keys with which secrets that come by the API are sealed in
the database. A key is a file of the node's machine: secrets.key of the configuration
names the one that seals, secrets.former those before it.`,
		Args: cobra.ArbitraryArgs, RunE: group,
	}
	cmd.AddCommand(a.keyCreate(g), a.keyList(g), a.keyRotate(g))
	return cmd
}

func (a *app) keyCreate(g *global) *cobra.Command {
	return &cobra.Command{
		Use:   "create FILE",
		Short: "Create a key in a new file",
		Long: `Create a key in a new file that only you can read. It asks no node. Keep a copy of the
file apart from the backups of the database: without it, nobody can open the secrets.`,
		Example: `  holdfast keys create /etc/holdfast/secrets.key`,
		Args:    args(1, 1, "the file"),
		RunE: func(_ *cobra.Command, given []string) error {
			key := make([]byte, keyring.KeySize)
			_, _ = rand.Read(key) // never fails
			if err := writeKey(given[0], base64.StdEncoding.EncodeToString(key)+"\n"); err != nil {
				return err
			}
			if g.json {
				return printJSON(a.stdout, map[string]string{"id": keyring.ID(key), "file": given[0]})
			}
			_, err := fmt.Fprintf(a.stdout, "key %s is in %s; in the configuration, write\n\n  secrets: {key: {file: %s}}\n\nand keep a copy of the file apart from the backups\n", keyring.ID(key), given[0], given[0])
			return err
		},
	}
}

// writeKey writes a new file, on disk when it returns: what is sealed with a lost key is lost.
func writeKey(path, text string) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600) //nolint:gosec // the person who runs the program names it
	if err != nil {
		return fmt.Errorf("create key: %w", err)
	}
	_, err = f.WriteString(text)
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return fmt.Errorf("write key: %w", errors.Join(err, os.Remove(path)))
	}
	namedfile.SyncFolder(filepath.Dir(path))
	return nil
}

func (a *app) keyList(g *global) *cobra.Command {
	return &cobra.Command{
		Use: "ls", Aliases: []string{"list"},
		Short: "List keys, and how many secrets each has sealed",
		Long: `List the keys of the node, and how many secrets each has sealed. Each secret is opened:
what does not open is listed with the reason, and the exit code is 1.`,
		Args: args(0, 0, "none"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.ask(cmd, g, func(ctx context.Context, c *client.Client) error {
				list, err := c.Keys().List(ctx)
				if err != nil {
					return err
				}
				if g.json {
					return errors.Join(printJSON(a.stdout, list), unopened(list.Broken))
				}
				rows := make([][]string, len(list.Keys))
				for i, k := range list.Keys {
					rows[i] = []string{k.ID, k.State, strconv.Itoa(k.Values)}
				}
				if err := table(a.stdout, []string{"KEY", "STATE", "SECRETS"}, rows); err != nil {
					return err
				}
				a.noteProblems(list.Problems)
				return unopened(list.Broken)
			})
		},
	}
}

func (a *app) noteProblems(list []api.KeyProblem) {
	for _, p := range list {
		a.note("%s: %s\n", p.Where, p.Why)
	}
}

// unopened returns the error of secrets that do not open.
func unopened(n int) error {
	if n == 0 {
		return nil
	}
	return fmt.Errorf("secrets that do not open: %d", n)
}

func (a *app) keyRotate(g *global) *cobra.Command {
	limit := 0
	cmd := &cobra.Command{
		Use:   "rotate",
		Short: "Seal all secrets with the newest key",
		Long: `Seal all secrets with the newest key, page by page, while the node runs, and say which
keys are not needed any more. It may be broken off and begun anew: what has the newest
key is left alone. Before it, create a key, name it as secrets.key, move the file of the
one before to secrets.former, and reload the node; where several nodes share a database,
name the new key in secrets.former of all of them first.`,
		Args: args(0, 0, "none"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.ask(cmd, g, func(ctx context.Context, c *client.Client) error { return a.rotate(ctx, g, c, limit) })
		},
	}
	cmd.Flags().IntVar(&limit, "page", 200, "rows per page, 1 to 1000")
	return cmd
}

func (a *app) rotate(ctx context.Context, g *global, c *client.Client, limit int) error {
	var all api.KeyRotation
	for {
		page, err := c.Keys().Rotate(ctx, all.Next, limit)
		if err != nil {
			return err
		}
		all.Looked += page.Looked
		all.Resealed += page.Resealed
		all.Problems = append(all.Problems, page.Problems...)
		if all.Next = page.Next; page.Next == "" {
			break
		}
	}
	list, err := c.Keys().List(ctx)
	switch {
	case err != nil:
		return err
	case g.json:
		return errors.Join(printJSON(a.stdout, all), unopened(list.Broken))
	}
	_, err = fmt.Fprintf(a.stdout, "looked at %d secrets, sealed %d anew\n", all.Looked, all.Resealed)
	for _, k := range list.Keys {
		if err == nil && k.State == "former" {
			need := "is not needed by this database any more; backups from before need it"
			if k.Values > 0 {
				need = fmt.Sprintf("is still needed by %d secrets: rotate again", k.Values)
			}
			_, err = fmt.Fprintf(a.stdout, "key %s %s\n", k.ID, need)
		}
	}
	a.noteProblems(all.Problems)
	return errors.Join(err, unopened(list.Broken))
}
