package main

import (
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/holdfast-mq/holdfast/node"
)

func (a *app) auditCommand(g *global) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "audit",
		Short: "Ask what has happened on a node, and who did it, and verify that record",
		Args:  cobra.ArbitraryArgs, RunE: group,
	}
	cmd.AddCommand(a.auditQueryCommand(g), a.auditShowCommand(g), a.auditExportCommand(g), a.auditKPIsCommand(g), a.auditVerify(g))
	cmd.AddCommand(a.auditCheckpointCommand(g), a.auditProveCommand(g), a.auditHoldCommand(g), a.auditHoldsCommand(g), a.auditReleaseCommand(g), a.auditEraseCommand(g), a.auditRotateCommand(g))
	return cmd
}

func (a *app) auditVerify(g *global) *cobra.Command {
	f := &configFlags{}
	var keys []string
	var witness, log, file, proof string
	cmd := &cobra.Command{
		Use: "verify", Aliases: []string{"verify-chain"},
		Short: "Verify that the audit log is what was written and signed",
		Long: `Verify the audit logs of a node, whether or not it runs: that no record was changed,
inserted or removed since it was written, and that all checkpoints fit. Give it the flags of
serve. Nothing is changed. A node that runs verifies its logs by itself as well, and tells the
result in its health report. An export (--file) needs neither the node nor its files.

Name the witness, best a copy from another machine: without it nobody can tell whether
the last records were deleted together with their checkpoints.

The exit code is 0 if the logs are intact; 7 if they are intact but not covered by a
recent checkpoint, no key is known, records are missing on record, or values are gone
without one; 8 if one is broken; and 1 if they could not be read.`,
		Example: `  holdfast audit verify --config /etc/holdfast/holdfast.yaml
  holdfast audit verify --data /var/lib/holdfast --witness /mnt/witness/shop-12 --json
  holdfast audit verify --file audit.jsonl --key "$VERIFIER_KEY"
  holdfast audit verify --proof proof.json --key "$VERIFIER_KEY"`,
		Args: args(0, 0, "none"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if (file != "" || proof != "") && log != "" {
				return usage(errors.New("--log: an export has one log, and so has a proof"))
			}
			if file != "" && proof != "" {
				return usage(errors.New("--file and --proof exclude each other"))
			}
			r, err := a.verifyAudit(cmd, f, file, proof, keys, witness, log)
			if _, bad := errors.AsType[*node.KeyError](err); bad {
				return usage(fmt.Errorf("--key: %w", err))
			}
			if err != nil {
				return ofStores(err)
			}
			if log != "" && len(r.Logs) == 0 {
				return &codedError{fmt.Errorf("this node keeps no audit log %q", log), exitNotFound}
			}
			if g.json {
				err = printJSON(a.stdout, r)
			} else {
				err = printAudit(a.stdout, &r)
			}
			return errors.Join(err, auditVerdict(&r))
		},
	}
	f.add(cmd)
	fs := cmd.Flags()
	fs.StringVar(&witness, "witness", "", "file or URL with checkpoints that a witness kept (default: the configured one)")
	fs.StringArrayVar(&keys, "key", nil, "verifier key, NAME+HASH+KEY, by which checkpoints are believed; repeat it for several (default: the node's own key)")
	fs.StringVar(&file, "file", "", "verify this export in JSON Lines, without a store: name the --key that signed it")
	fs.StringVar(&proof, "proof", "", "verify this proof of audit prove, without a store: name the --key that signed the log")
	fs.StringVar(&log, "log", "", "verify only the log of this name")
	return cmd
}

// verifyAudit verifies an export or a proof, or the logs of a configured node if there is none.
func (a *app) verifyAudit(cmd *cobra.Command, f *configFlags, file, proof string, keys []string, witness, log string) (node.AuditReport, error) {
	switch {
	case file != "":
		return node.VerifyAuditExport(cmd.Context(), file, keys, witness)
	case proof != "":
		return node.VerifyAuditProof(proof, keys, witness)
	}
	c, err := a.load(cmd, f)
	if err != nil {
		return node.AuditReport{}, err
	}
	return node.VerifyAudit(cmd.Context(), c, keys, witness, log)
}

func auditVerdict(r *node.AuditReport) error {
	switch r.Status {
	case "intact":
		return nil
	case "unanchored":
		return verdict(exitWarnings)
	case "broken":
	}
	return verdict(exitFailing)
}

func printAudit(w io.Writer, r *node.AuditReport) error {
	for i := range r.Logs {
		l := &r.Logs[i]
		s := newSheet(w)
		s.line("log", l.Origin)
		s.line("status", string(l.Status))
		if l.Fault != "" {
			s.line("fault", fmt.Sprintf("%s, at record %d", l.Fault, l.Seq))
		}
		s.line("detail", l.Detail)
		if l.Record == nil {
			s.line("records", fmt.Sprintf("%d to %d", l.First, l.Size))
		} else {
			s.line("number", fmt.Sprint(l.Size))
			s.line("record", string(l.Record))
		}
		if l.Anchored > 0 {
			s.line("signed", fmt.Sprintf("up to record %d, at %s", l.Anchored, l.AnchoredAt.UTC().Format(time.RFC3339)))
			s.line("by", l.Key)
		}
		if l.Witnessed > 0 {
			s.line("witnessed", fmt.Sprintf("up to record %d, at %s", l.Witnessed, l.WitnessedAt.UTC().Format(time.RFC3339)))
		}
		if l.Erased > 0 {
			s.line("erased values", fmt.Sprint(l.Erased))
		}
		if l.Missing > 0 {
			s.line("not here", fmt.Sprint(l.Missing))
		}
		if err := s.end(); err != nil {
			return err
		}
	}
	_, err := fmt.Fprintf(w, "%s\n", r.Status)
	return err
}
