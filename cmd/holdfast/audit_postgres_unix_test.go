//go:build unix

package main

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/holdfast-mq/holdfast/internal/pgtest"
	"github.com/holdfast-mq/holdfast/internal/racetest"
)

// appends reports whether the node is the one that writes the audit log.
func (p *child) appends() bool {
	p.t.Helper()
	return strings.Contains(get(p.t, p.url()+"/_rf/health"), "; this node writes it")
}

// Three nodes of one central append to one chain. When the one that writes is killed, or suspended, another one
// takes over within 10 s; a node that wakes up writes nothing that is there already.
func TestThreeNodesWriteOneAuditLog(t *testing.T) {
	t.Parallel()
	racetest.Without(t, "its processes are suspended and killed")
	dsn := pgtest.Shared(t).Database(t)
	key := filepath.Join(t.TempDir(), "audit.key")
	var nodes []*child
	for _, id := range []string{"a", "b", "c"} {
		nodes = append(nodes, sharing(t, dsn, id, fmt.Sprintf("role: central\ndestinations: {erp: {call: {url: 'http://127.0.0.1:1'}}}\naudit: {key: %s, witness: %s}\n", key, key+".witness")).running())
	}
	calls := 0
	call := func(n *child) {
		t.Helper()
		calls++
		succeeds(t, "destinations", map[bool]string{true: "pause", false: "resume"}[calls%2 == 1], "erp", "--url", n.url())
	}
	var writer *child
	written := func(asked ...*child) {
		t.Helper()
		for _, n := range asked {
			call(n)
		}
		eventually(t, "the calls are in the log", func() bool {
			return counted(t, dsn, `SELECT count(*) FROM hf_audit WHERE kind = 'ApiCall'`) == calls
		})
		i := slices.IndexFunc(asked, (*child).appends)
		if i < 0 {
			t.Fatal("no node says that it writes the log")
		}
		writer = asked[i]
	}
	others := func() (list []*child) {
		return slices.DeleteFunc(slices.Clone(nodes), func(n *child) bool { return n == writer })
	}
	taken := func(how string) {
		t.Helper()
		began, left := time.Now(), others()
		written(left...)
		if took := time.Since(began); took > 10*time.Second+slow {
			t.Errorf("the log was taken over %v after its writer was %s", took, how)
		}
	}
	written(nodes...)
	for range 2 {
		asleep := writer
		if err := asleep.cmd.Process.Signal(syscall.SIGSTOP); err != nil {
			t.Fatal(err)
		}
		taken("suspended")
		if err := asleep.cmd.Process.Signal(syscall.SIGCONT); err != nil {
			t.Fatal(err)
		}
		eventually(t, "one node writes", func() bool { return !asleep.appends() })
		written(nodes...)
		writer.kill()
		dead := writer
		taken("killed")
		dead.running()
		written(nodes...)
	}
	for _, n := range nodes {
		if err := n.end(); err != nil {
			t.Errorf("stop: %v\n%s", err, n.tail())
		}
	}
	if n := counted(t, dsn, `SELECT count(*) FROM hf_audit_log`); n != 1 {
		t.Errorf("%d logs, want one", n)
	}
	if n := counted(t, dsn, `SELECT count(*) FROM hf_audit WHERE kind = 'ApiCall'`); n != calls {
		t.Errorf("%d calls are recorded, want %d", n, calls)
	}
	if n := counted(t, dsn, `SELECT max(seq) - count(*) FROM hf_audit`); n != 0 {
		t.Errorf("%d numbers have no record", n)
	}
	if got := succeeds(t, "audit", "verify", "--config", nodes[0].args[len(nodes[0].args)-1]); !strings.HasSuffix(got, "intact\n") {
		t.Errorf("verify said\n%s", got)
	}
}
