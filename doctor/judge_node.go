package doctor

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"time"

	"github.com/holdfast-mq/holdfast/admin/api"
	"github.com/holdfast-mq/holdfast/config"
)

func judgeNode(f *Findings) []Check {
	const g = in("Node")
	p := f.Program
	versions := fmt.Sprintf("holdfast %s, %s, %s", p.Version, p.Go, p.Platform)
	if f.File.SQLite != "" {
		versions += ", SQLite " + f.File.SQLite
	}
	checks := []Check{g.ok("program", versions)}
	if f.Server == nil {
		checks = append(checks, judgeOwner(g, f))
	}
	checks = append(checks, judgeListen(g, f))
	checks = append(checks, judgeTokens(g, f)...)
	h := f.Running.Health
	if h == nil {
		return append(checks, g.skipped("health", noHealth(f)))
	}
	if h.Version != p.Version {
		checks = append(checks, g.warning("version of the node", fmt.Sprintf("the running node is %s, this program %s", h.Version, p.Version),
			"restart the node, or run the doctor of the program that it was started with"))
	}
	checks = append(checks, judgeHealth(g, h))
	switch r := &f.Running; {
	case r.Keys != nil:
		checks = append(checks, judgeKeys(g, r.Keys))
	case r.KeysErr != nil:
		checks = append(checks, g.skipped("secrets", fmt.Sprintf("the node does not say whether they open: %v", r.KeysErr)))
	}
	return checks
}

// judgeKeys judges whether the secrets that came by the API open.
func judgeKeys(g in, list *api.KeyList) Check {
	const name = "secrets"
	total, former := 0, 0
	for _, k := range list.Keys {
		if total += k.Values; k.State == "former" {
			former += k.Values
		}
	}
	var items []string
	for _, p := range list.Problems {
		items = append(items, p.Where+": "+p.Why)
	}
	switch {
	case list.Broken > 0:
		return g.failing(name, fmt.Sprintf("of the secrets that came by the API, %d do not open", list.Broken),
			"name the missing keys in secrets.former, or give the secrets again").listing(items)
	case total == 0:
		return g.ok(name, "none came by the API")
	case former > 0:
		return g.ok(name, fmt.Sprintf("all %d that came by the API open, %d of them with former keys; holdfast keys rotate seals them anew", total, former))
	}
	return g.ok(name, fmt.Sprintf("all %d that came by the API open", total))
}

// judgeTokens judges who can operate a node that asks for tokens.
func judgeTokens(g in, f *Findings) []Check {
	const name = "tokens"
	c := f.Config.Config
	if c == nil || !c.AsksForTokens() {
		return nil
	}
	if err := f.File.Err; err != nil && !errors.Is(err, fs.ErrNotExist) {
		return []Check{g.skipped(name, "the store could not be asked for them")}
	}
	what, _ := c.NoAdmin(config.Access{Admins: f.File.Admins, Sites: f.File.Sites, Waiting: len(f.File.Waiting) > 0})
	if what != "" {
		return []Check{g.failing(name, what, c.FirstToken())}
	}
	return []Check{g.ok(name, fmt.Sprintf("asked for; %d with the role admin for good", f.File.Admins))}
}

func noHealth(f *Findings) string {
	switch {
	case f.Running.Node:
		return fmt.Sprintf("the node does not say: %v; give a token with --token-file", f.Running.Err)
	case f.Owner.Held:
		return "the node that has the database did not answer"
	case f.Running.Err != nil:
		return "no node runs: " + f.Running.Err.Error()
	}
	return "no node runs"
}

func judgeHealth(g in, h *api.Health) Check {
	var items []string
	for _, c := range h.Checks {
		if c.Status != api.OK {
			items = append(items, c.Name+": "+c.Status+": "+c.Detail)
		}
	}
	detail := fmt.Sprintf("node %s says %s; started %s", h.Node, h.Status, h.Started.UTC().Format(time.RFC3339))
	switch h.Status {
	case api.OK:
		return g.ok("health", detail)
	case api.Degraded:
		return g.warning("health", detail, "it works; take care of what it lists").listing(items)
	}
	return g.failing("health", detail, "take care of what it lists; its log says more").listing(items)
}

func judgeOwner(g in, f *Findings) Check {
	o := f.Owner
	who := "a process that left no name"
	if o.PID > 0 {
		who = fmt.Sprintf("process %d on %s, since %s", o.PID, o.Host, o.Since.UTC().Format(time.RFC3339))
	}
	const name = "ownership"
	switch {
	case f.Data == "":
		return g.skipped(name, "the configuration does not say where the data is; name it with --data")
	case errors.Is(o.Err, fs.ErrNotExist):
		return g.ok(name, "no node has ever owned the database")
	case o.Err != nil:
		return g.warning(name, o.Err.Error(), "run the doctor as the user of the node")
	case !o.Held && o.PID > 0:
		return g.ok(name, "no node owns the database; the last was "+who)
	case !o.Held:
		return g.ok(name, "no node owns the database")
	case o.Here && o.PID > 0 && !o.Alive:
		return g.warning(name, "the database is locked by "+who+", but that process is not visible here",
			"it may run in another container: look there, and give two nodes two folders")
	case !o.Here && o.PID > 0:
		return g.warning(name, "the database is locked by "+who+": that is another machine, or a container with its own name",
			"a folder that two machines share is not safe for SQLite; keep the data on a disk of its own machine")
	}
	return g.ok(name, who)
}

func judgeListen(g in, f *Findings) Check {
	const name = "address"
	l, r := f.Listen, f.Running
	switch {
	case l.Address == "":
		return g.skipped(name, "the configuration does not say where the node listens")
	case l.AnyPort:
		return g.skipped(name, l.Address+" means any free port: there is nothing to ask; name the node with --url")
	case l.Foreign:
		return g.failing(name, l.Address+" is not an address of this machine: a node cannot listen there", "set listen to one of its own, or to 0.0.0.0 for all of them")
	case l.Err != nil:
		return g.warning(name, fmt.Sprintf("%s neither answers nor refuses: %v", l.Address, l.Err), "look for a packet filter, or a process that hangs")
	case !l.Taken && f.Owner.Held:
		return g.warning(name, l.Address+": nobody listens, although a process owns the database",
			"it is starting or stopping, or was started with another address")
	case !l.Taken:
		return g.ok(name, l.Address+" is free")
	case !r.Node && f.Owner.Held && errors.Is(r.Err, context.DeadlineExceeded):
		return g.failing(name, l.Address+" accepts connections but does not answer, and a process owns the database",
			"the node hangs, or is overloaded: see its log, and wait longer with --timeout; if nothing moves, restart it")
	case !r.Node:
		return g.failing(name, fmt.Sprintf("%s: another program listens there: %v", l.Address, r.Err), "stop it, or set listen to another port")
	case !f.Owner.Held && f.Owner.Err == nil, errors.Is(f.Owner.Err, fs.ErrNotExist):
		return g.failing(name, l.Address+": the node that answers there does not own this database", "name its data folder with --data, or set listen to another port")
	case r.Health != nil && f.Config.Config != nil && r.Health.Node != f.Config.Config.Node.ID:
		return g.warning(name, fmt.Sprintf("%s: node %s answers, but the configuration is that of %s", l.Address, r.Health.Node, f.Config.Config.Node.ID),
			"run the doctor with the configuration that the node was started with")
	}
	return g.ok(name, strings.TrimSpace(l.Address+": our node answers"))
}
