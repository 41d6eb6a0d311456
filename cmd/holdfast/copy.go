package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/holdfast-mq/holdfast/cmd/holdfast/internal/demo"
	"github.com/holdfast-mq/holdfast/node"
)

// copied is the JSON output of copy.
type copied struct {
	From string `json:"from"`
	To   string `json:"to"`
	node.CopyReport

	Took float64 `json:"took"` // seconds
}

func (a *app) copyCommand(g *global) *cobra.Command {
	var from, to string
	var undo, lost bool
	cmd := &cobra.Command{
		Use:   "copy --from STORE --to STORE",
		Short: "Move everything from one store into another, such as SQLite to PostgreSQL",
		Long: `Move everything from one store into another that is empty: messages in every
state with their history and the order of their keys, the inbox, lanes, tokens,
channels, lists and notifications. A store is sqlite:FOLDER for the data folder of a
node, the address of a PostgreSQL database, or env:NAME for a variable that holds
either of them. First stop all nodes and programs that use one of the two stores.

If a copy is cut off, give the same command again, and it goes on where it was. At
the end both stores are compared, row by row. Then nodes refuse the source, so that
nothing is delivered twice. Nothing else is changed in it. Positions of followers of
the journal are not copied: a follower begins anew.

--undo, with the same two stores, takes a copy back that no node has used yet: nodes
can use the source again, and refuse the target. --undo --lost is for a target that
is lost. Nobody can check then that no node uses it.`,
		Example: `  holdfast copy --from sqlite:/var/lib/holdfast --to 'postgres://holdfast@db.example/holdfast?sslmode=verify-full'
  TARGET=postgres://… holdfast copy --from sqlite:/var/lib/holdfast --to env:TARGET --json
  holdfast copy --undo --from sqlite:/var/lib/holdfast --to 'postgres://holdfast@db.example/holdfast?sslmode=verify-full'`,
		Args: args(0, 0, "none; the stores are given by --from and --to"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if undo {
				return a.undoCopy(cmd.Context(), g, from, to, lost)
			}
			if lost {
				return usage(errors.New("--lost goes with --undo"))
			}
			return a.copy(cmd.Context(), g, from, to)
		},
	}
	f := cmd.Flags()
	f.StringVar(&from, "from", "", "store to move: sqlite:FOLDER, postgres://…, or env:NAME")
	f.StringVar(&to, "to", "", "empty store to move it into: sqlite:FOLDER, postgres://…, or env:NAME")
	f.BoolVar(&undo, "undo", false, "take a copy back: let nodes use the store of --from again, and not that of --to")
	f.BoolVar(&lost, "lost", false, "with --undo, instead of --to: the other store is lost, and nobody uses it")
	return cmd
}

// storePlace reads a flag that names a store.
func (a *app) storePlace(flag, text string) (p node.StorePlace, err error) {
	if text == "" {
		return p, usage(fmt.Errorf("--%s is missing: name a store, sqlite:FOLDER or postgres://user@host:5432/database", flag))
	}
	name, named := strings.CutPrefix(text, "env:")
	if named {
		if text = a.getenv(name); text == "" {
			return p, usage(fmt.Errorf("--%s: the variable %s is not set", flag, name))
		}
	}
	if p, err = node.ParsePlace(text); err != nil {
		return p, usage(fmt.Errorf("--%s: %w", flag, err))
	}
	if !named && p.HasPassword() {
		a.note("holdfast: warning: --%s: holds a password, which other users of the machine can see there; prefer env:NAME\n", flag)
	}
	return p, nil
}

func (a *app) undoCopy(ctx context.Context, g *global, from, to string, lost bool) error {
	if lost == (to != "") {
		return usage(errors.New("--undo takes --to as well, the store that it was moved to, or --lost if that is lost"))
	}
	p, err := a.storePlace("from", from)
	if err != nil {
		return err
	}
	var other *node.StorePlace
	if !lost {
		place, err := a.storePlace("to", to)
		if err != nil {
			return err
		}
		other = &place
	}
	m, err := node.UndoCopy(ctx, p, other)
	if err != nil {
		return ofStores(err)
	}
	if g.json {
		return printJSON(a.stdout, m)
	}
	what := "and refuse " + plain(m.To)
	if lost {
		what = fmt.Sprintf("the copy at %s, moved there at %s, must not be used any more, or everything is delivered twice", plain(m.To), plain(m.At))
	}
	_, err = fmt.Fprintf(a.stdout, "nodes can use %s again; %s\n", plain(p.String()), what)
	return err
}

func (a *app) copy(ctx context.Context, g *global, from, to string) error {
	source, err := a.storePlace("from", from)
	if err != nil {
		return err
	}
	target, err := a.storePlace("to", to)
	if err != nil {
		return err
	}
	log := slog.New(slog.NewTextHandler(a.stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
	c := copied{From: source.String(), To: target.String()}
	line := &progressLine{out: a.stderr, redraw: !g.json && isScreen(a.stderr)}
	began := time.Now()
	err = a.untilTold(ctx, func(ctx context.Context) (err error) {
		c.CopyReport, err = node.Copy(ctx, source, target, log, line.show)
		return err
	})
	line.end()
	if errors.Is(err, context.Canceled) {
		return fmt.Errorf("%w: to go on with the copy, give the same command again", err)
	}
	if err != nil {
		return ofStores(err)
	}
	c.Took = time.Since(began).Round(time.Millisecond).Seconds()
	if g.json {
		return printJSON(a.stdout, c)
	}
	return a.printCopied(&c)
}

func (a *app) printCopied(c *copied) error {
	var states []string
	for _, name := range slices.Sorted(maps.Keys(c.States)) {
		states = append(states, fmt.Sprintf("%d %s", c.States[name], name))
	}
	if len(states) == 0 {
		states = []string{"none"}
	}
	_, err := fmt.Fprintf(a.stdout, "moved %s to %s in %.1f s; both are the same, row by row\nmessages  %s\nhistory   %d\ninbox     %d\nnotes     %d\ndigest    %s\n",
		plain(c.From), plain(c.To), c.Took, strings.Join(states, ", "), c.Events, c.Inbox, c.Notifications, c.Digest)
	if err == nil {
		a.note("nodes refuse %s from now on; followers of the journal begin anew\n", plain(c.From))
	}
	return err
}

// isScreen reports whether w is a terminal, on which a line can be drawn again.
func isScreen(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && demo.CanRedraw(f)
}

// progressLine is a line on a terminal that is drawn again and again.
type progressLine struct {
	out    io.Writer
	redraw bool
	last   time.Time
	drawn  bool
}

// show draws the line, at most a few times a second.
func (l *progressLine) show(s node.CopyStatus) {
	if !l.redraw || s.Done < s.All && time.Since(l.last) < 100*time.Millisecond {
		return
	}
	l.last, l.drawn = time.Now(), true
	const width = 40
	n := int64(width)
	if s.All > 0 {
		n = min(width*s.Done/s.All, width)
	}
	_, _ = fmt.Fprintf(l.out, "\r[%s%s] %-13s %d of %d ", strings.Repeat("#", int(n)), strings.Repeat(".", width-int(n)), s.Phase, s.Done, s.All)
}

func (l *progressLine) end() {
	if l.drawn {
		_, _ = fmt.Fprintln(l.out)
	}
}
