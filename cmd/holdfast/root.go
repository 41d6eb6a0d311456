package main

import (
	"context"
	"log/slog"
	"time"

	"github.com/spf13/cobra"
)

// run runs one command line and returns the exit code.
func (a *app) run(ctx context.Context, args []string) int {
	root := a.root()
	root.SetArgs(args)
	root.SetIn(a.stdin)
	root.SetOut(a.stdout)
	root.SetErr(a.stderr)
	defer a.flush()
	cmd, err := root.ExecuteContextC(ctx)
	if err == nil {
		return exitOK
	}
	code := exitCode(err)
	if log := a.log.Load(); log != nil {
		log.ErrorContext(ctx, "failed", slog.Any("error", err), slog.Int("exit_code", code))
	} else {
		report(a.stderr, cmd, err)
	}
	return code
}

func (a *app) root() *cobra.Command {
	g := &global{}
	root := &cobra.Command{
		Use:   "holdfast",
		Short: "Store messages durably, and deliver them when the other side is there",
		Long: `Holdfast takes messages, makes them durable, delivers them when the other side
is there, and shows what became of them.

"holdfast serve" runs a node, and "holdfast demo" shows three of them at work. The
other commands ask a running node over its HTTP API: the one at ` + defaultURL + ` unless --url or HOLDFAST_URL
names another.`,
		Example: `  holdfast demo
  holdfast serve --config holdfast.yaml
  holdfast send inventory OrderApproved '{"order":42}'
  holdfast messages ls --state parked`,
		SilenceErrors: true, SilenceUsage: true,
		Args: cobra.ArbitraryArgs, RunE: group,
	}
	f := root.PersistentFlags()
	f.StringVar(&g.url, "url", defaultURL, "address of the node: http://, https:// or unix:///path/of/socket (env "+envURL+")")
	f.StringVar(&g.token, "token", "", "token for the node (env "+envToken+"); other users of the machine can see it here: prefer --token-file")
	f.StringVar(&g.tokenFile, "token-file", "", "file that holds the token")
	f.StringVar(&g.ca, "ca", "", "file with the CA of the node's certificate, in addition to those that the system trusts (env "+envCA+")")
	f.BoolVar(&g.json, "json", false, "print JSON, one document per line")
	f.DurationVar(&g.timeout, "timeout", 30*time.Second, "longest time to wait for each answer of the node")
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return usage(err) })
	root.AddCommand(
		a.serveCommand(), a.demoCommand(g), a.sendCommand(g), a.notifyCommand(g), a.messagesCommand(g), a.operationsCommand(g), a.inboxCommand(g),
		a.activityCommand(g), a.bulkCommand(g), a.keyringCommand(g),
		a.notificationsCommand(g), a.channelsCommand(g), a.destinationsCommand(g), a.statusCommand(g), a.acknowledgeCommand(g), a.listsCommand(g), a.topicsCommand(g), a.subscriptionsCommand(g), a.scheduleCommand(g), a.eventsCommand(g), a.tokensCommand(g), a.usersCommand(g), a.journalCommand(g), a.sitesCommand(g), a.callsCommand(g), a.enrollCommand(g),
		a.backupCommand(g), a.restoreCommand(g), a.migrateCommand(g), a.copyCommand(g), a.importCommand(g), a.auditCommand(g), a.configCommand(), a.doctorCommand(g), a.versionCommand(g),
	)
	return root
}
