package storetest

import (
	"bytes"
	"errors"
	"regexp"
	"time"

	"github.com/holdfast-mq/holdfast/audit"
	"github.com/holdfast-mq/holdfast/audit/audittest"
	"github.com/holdfast-mq/holdfast/link/sites"
	"github.com/holdfast-mq/holdfast/nodestore"
	"github.com/holdfast-mq/holdfast/rows"
)

// copiesExported exports the copy of a site's log that has a gap, and one that central has purged. Both verify without the store.
func copiesExported(k *kit) {
	a := k.purger()
	defer a.stop()
	key := k.key()
	l := k.newLog(plantLog, "", 12)
	k.copies(l, 1, 5, sites.Copy{Size: 5})
	k.copies(l, 8, 8, sites.Copy{Size: 8, Gaps: []sites.Range{{First: 6, Last: 7}}})
	export := func() []byte {
		k.t.Helper()
		var b bytes.Buffer
		x := &audit.Exporter{Reader: nodestore.New(k.Full, nil).Audit}
		k.ok(x.Begin(k.ctx(), plantLog))
		k.ok(x.Write(k.ctx(), &b))
		return b.Bytes()
	}
	verified := func(name string, file []byte, want audit.Verdict, fault audit.Fault, keys ...*audit.Key) audit.LogReport {
		k.t.Helper()
		var o audit.VerifyOptions
		for _, key := range keys {
			o.Keys = append(o.Keys, key.Public())
		}
		r, err := audit.VerifyExport(k.ctx(), bytes.NewReader(file), o)
		if err != nil || r.Status != want || r.Logs[0].Fault != fault {
			k.t.Errorf("%s: %+v, %v, want %s %s", name, r, err, want, fault)
			return audit.LogReport{}
		}
		if err := audittest.Export(bytes.NewReader(file), key.VerifierKey(plantLog)); (err != nil) != (want == audit.Broken) {
			k.t.Errorf("%s: the other verifier says %v", name, err)
		}
		return r.Logs[0]
	}
	signed := func(size int64) {
		k.t.Helper()
		c := audit.Checkpoint{Origin: plantLog, Size: size, Chain: l.hashes[size-1], Time: time.Now()}
		note, err := c.Sign(key)
		k.ok(err)
		k.ok(nodestore.New(k.Full, nil).Audit.Witness(k.ctx(), &rows.AuditCheckpoint{Origin: plantLog, Size: size, Root: c.Root[:], Note: note}, 0))
	}
	signed(8)
	gap := verified("with a gap", export(), audit.Unanchored, "", key)
	equal(k, "records that are missing", gap.Missing, 2)
	verified("without the gap in the trailer", regexp.MustCompile(`,"gaps":[^\]]*\]`).ReplaceAll(export(), nil), audit.Broken, audit.TailCut, key)

	forged := regexp.MustCompile(`("seq":8,.*?"node":")[^"]*`).ReplaceAll(export(), []byte("${1}forged"))
	verified("with another record after the gap", forged, audit.Broken, audit.Changed, key)
	own := bytes.Replace(export(), []byte(`"copy":true`), []byte(`"copy":false`), 1)
	if _, err := audit.VerifyExport(k.ctx(), bytes.NewReader(own), audit.VerifyOptions{}); !errors.Is(err, audit.ErrExport) {
		k.t.Errorf("an export of an own log with a gap: %v", err)
	}

	k.copies(l, 6, 6, sites.Copy{Size: 8, Gaps: []sites.Range{{First: 7, Last: 7}}})
	verified("with less of a gap", export(), audit.Unanchored, "", key)
	k.copies(l, 7, 7, sites.Copy{Size: 8})
	k.audited()
	k.pass(auditKept + time.Minute)
	k.copies(l, 9, 12, sites.Copy{Size: 12})
	k.call(k.Full, "new", 1)
	k.audited()
	a.purge(k, 8+1)
	signed(12)
	file := export()
	whole := verified("purged", file, audit.Intact, "", key, a.Key)
	equal(k, "first record", whole.First, 9)
	verified("purged, by the site's key", file, audit.Unanchored, "", key)
	proof := regexp.MustCompile(`,"purge":\{.*?\}`)
	verified("purged, without the proof", proof.ReplaceAll(file, nil), audit.Broken, audit.PurgeForged, key, a.Key)
	verified("purged, with another index", regexp.MustCompile(`"index":\d+`).ReplaceAll(file, []byte(`"index":0`)), audit.Broken, audit.PurgeForged, key, a.Key)
}
