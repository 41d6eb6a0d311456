package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/holdfast-mq/holdfast/config"
	"github.com/holdfast-mq/holdfast/internal/setting"
	"github.com/holdfast-mq/holdfast/node"
)

// configFlags are the flags that override the configuration file.
type configFlags struct {
	file     string
	over     config.Overrides
	insecure bool // always refused; the error says what to write instead

	listenUnencrypted, storeUnencrypted bool
}

func (f *configFlags) add(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVarP(&f.file, "config", "c", "", "configuration file (env "+config.EnvConfig+"); without it the defaults hold")
	flags.StringVar(&f.over.NodeID, "node-id", "", "id of the node; default: the host's name")
	flags.StringVar(&f.over.Data, "data", "", "folder of the database")
	flags.StringVar(&f.over.Store, "store", "", "address of a PostgreSQL database instead of --data; if it holds a password, prefer HOLDFAST_STORE, which other users of the machine cannot see")
	flags.StringVar(&f.over.Listen, "listen", "", "address to listen on, host:port or unix:///path/of/socket")
	flags.StringVar(&f.over.Tokens, "tokens", "", "who needs a token: remote (other machines), always (everybody), never (nobody)")
	flags.BoolVar(&f.listenUnencrypted, "listen-unencrypted", false, "let other machines reach the listener without TLS: everybody on the way can read and change what is sent")
	flags.BoolVar(&f.storeUnencrypted, "store-unencrypted", false, "use a database on another machine without TLS: everybody on the way can read and change what is stored")
	flags.BoolVar(&f.insecure, "insecure", false, "refused: name what you give up with --tokens never, --listen-unencrypted or --store-unencrypted")
	flags.StringVar(&f.over.LogLevel, "log-level", "", "debug, info, warn or error")
	flags.StringVar(&f.over.LogFormat, "log-format", "", "text or json")
}

// load reads the configuration and prints its warnings.
func (a *app) load(cmd *cobra.Command, f *configFlags) (*config.Config, error) {
	_, c, warnings, err := a.read(cmd, f)
	a.warn(warnings)
	return c, err
}

func (a *app) warn(list []config.Warning) {
	for _, w := range list {
		if log := a.log.Load(); log != nil {
			log.Warn("configuration", slog.String("warning", w.String()))
		} else {
			a.note("holdfast: warning: %s\n", plain(w.String()))
		}
	}
}

// read reads the configuration, and returns the name of its file.
func (a *app) read(cmd *cobra.Command, f *configFlags) (string, *config.Config, []config.Warning, error) {
	file, over := f.file, f.over
	if file == "" {
		file = a.getenv(config.EnvConfig)
	}
	for name, flag := range map[string]struct {
		value *bool
		over  **bool
	}{
		"insecure":           {&f.insecure, &over.Insecure},
		"listen-unencrypted": {&f.listenUnencrypted, &over.ListenUnencrypted},
		"store-unencrypted":  {&f.storeUnencrypted, &over.StoreUnencrypted},
	} {
		if cmd.Flags().Changed(name) {
			*flag.over = flag.value
		}
	}
	env := a.env
	env.Known = append(env.Known, envURL, envToken, envCA, config.EnvConfig)
	c, warnings, err := config.Load(file, env, over)
	return file, c, warnings, err
}

// readWhole is read, and also checks what the configuration names. It is for commands that start a
// node, or say whether one would start.
func (a *app) readWhole(cmd *cobra.Command, f *configFlags) (string, *config.Config, []config.Warning, error) {
	file, c, warnings, err := a.read(cmd, f)
	if err == nil {
		err = node.Preflight(c)
	}
	return file, c, warnings, err
}

// storeWithin is how long config check waits for the store.
const storeWithin = 5 * time.Second

func (a *app) configCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "config",
		Short: "Check and show the configuration",
		Args:  cobra.ArbitraryArgs, RunE: group,
	}
	check, show := &configFlags{}, &configFlags{}
	checkCommand := &cobra.Command{
		Use:   "check",
		Short: "Check the configuration, as serve would read it",
		Long: `Check the configuration as serve would read it: file, environment, flags and the
seed that it names. It also checks the tokens in the store. All faults are printed,
each with its place, and the exit code is 2 then.`,
		Example: `  holdfast config check --config holdfast.yaml`,
		Args:    args(0, 0, "none; the file is given by --config"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, c, warnings, err := a.readWhole(cmd, check)
			a.warn(warnings)
			if err != nil {
				return err
			}
			ctx, cancel := context.WithTimeout(cmd.Context(), storeWithin)
			defer cancel()
			if what := node.CheckAccess(ctx, c); what != "" {
				a.warn([]config.Warning{{Path: "tokens", Problem: what}})
			}
			_, err = fmt.Fprintln(a.stdout, "the configuration is in order")
			return err
		},
	}
	showCommand := &cobra.Command{
		Use:   "show",
		Short: "Print the whole configuration, defaults included, without secrets",
		Long: `Print the whole configuration, defaults included. Possible secrets that stand in
the file itself show as [secret]: passwords and query values of URLs, and values of
headers. A file that holds [secret] is refused.`,
		Example: `  holdfast config show --config holdfast.yaml
  holdfast config show >holdfast.yaml`,
		Args: args(0, 0, "none; the file is given by --config"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := a.load(cmd, show)
			if err != nil {
				return err
			}
			_, err = a.stdout.Write(c.YAML())
			return err
		},
	}
	check.add(checkCommand)
	show.add(showCommand)
	cmd.AddCommand(checkCommand, showCommand, a.keysCommand(), a.schemaCommand())
	return cmd
}

func (a *app) keysCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "keys [PART]",
		Short: "List the keys of the file, their values and their defaults",
		Long: `List the keys of the file: what each means, which values it takes, and its default.
With a part of a key, list only the keys that contain it. Words in capitals stand
for names that you choose.`,
		Example: `  holdfast config keys retry
  holdfast config keys limits.payload`,
		Args: args(0, 1, "a part of a key, or nothing"),
		RunE: func(_ *cobra.Command, args []string) error {
			part, found := strings.Join(args, ""), false
			for _, k := range config.Keys(node.DestinationKinds()) {
				if !strings.Contains(strings.ToLower(k.Path), strings.ToLower(part)) {
					continue
				}
				found = true
				text := fmt.Sprintf("%s\n    %s\n    values:  %s\n", k.Path, setting.Plain(k.Meaning), setting.Plain(k.Values))
				if k.Default != "" {
					text += "    default: " + setting.Plain(k.Default) + "\n"
				}
				if _, err := io.WriteString(a.stdout, text); err != nil {
					return err
				}
			}
			if !found {
				return usage(fmt.Errorf("no key has %q in it; see all of them with: holdfast config keys", part))
			}
			return nil
		},
	}
}

func (a *app) schemaCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "schema",
		Short: "Print a JSON Schema of the configuration file",
		Long: `Print a JSON Schema of the configuration file, with which an editor completes keys
and shows mistakes while you write. It does not know this machine: only config check
finds out such things as whether a file exists.`,
		Example: `  holdfast config schema >holdfast.schema.json
  # in the first line of holdfast.yaml, for editors with the YAML language server:
  # yaml-language-server: $schema=holdfast.schema.json`,
		Args: args(0, 0, "none"),
		RunE: func(*cobra.Command, []string) error {
			_, err := a.stdout.Write(config.Schema(node.DestinationKinds()))
			return err
		},
	}
}
