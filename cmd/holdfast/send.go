package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/holdfast-mq/holdfast/admin/api"
	"github.com/holdfast-mq/holdfast/admin/client"
	"github.com/holdfast-mq/holdfast/internal/span"
)

type sendFlags struct {
	m       api.NewMessage
	headers []string
	retries int
	later   bool
	file    string
	quiet   bool
}

func (a *app) sendCommand(g *global) *cobra.Command {
	f := &sendFlags{}
	cmd := &cobra.Command{
		Use:   "send DESTINATION ENDPOINT [PAYLOAD | -]",
		Short: "Send a message",
		Long: `Send a message through the node. It returns when the message is on the node's
disk; "messages show" tells what becomes of it.

The payload is JSON: the third argument, the content of --file, or standard
input for "-". Its bytes are kept as they are. Without one, null is sent.

Give --id to be able to repeat the command: the same id with the same content
is the same message, and is sent once.

With --wait it returns when the first attempt has ended: with the answer of the
destination, with what went wrong while the message waits to be tried again, or
with exit code 4 if the destination has refused it for good.`,
		Example: `  holdfast send inventory OrderApproved '{"order":42}'
  holdfast send inventory OrderApproved --file order.json --ttl 7d
  jq .order in.json | holdfast send inventory OrderApproved - --id order-42
  holdfast send erp Order '{"order":42}' --wait 5s
  holdfast send erp Order '{"order":42}' --no-attempt --retry-interval 1m --max-retries 0
  holdfast send erp Order '{"order":42}' --category external-system --instance mixer-3 --script recipe.lua
  holdfast send billing Invoice '"text in quotes"' --kind Command --max-retries 3`,
		Args: args(2, 3, "a destination, an endpoint and at most one payload"),
		RunE: func(cmd *cobra.Command, given []string) error { return a.send(cmd, g, f, given) },
	}
	flags := cmd.Flags()
	flags.StringVar(&f.m.ID, "id", "", "message id; default: the node mints one")
	flags.StringVar(&f.m.Kind, "kind", "", "Signal, Command, PushCall or Response (default Signal)")
	flags.StringVar(&f.m.CorrelationID, "correlation-id", "", "ties the messages of one conversation together")
	flags.StringVar(&f.m.OrderingKey, "ordering-key", "", "at most one message of a key is in flight")
	flags.StringVar(&f.m.Source, "source", "", "who sends it; default: the node")
	flags.StringVar(&f.m.TTL, "ttl", "", "how long to try to deliver it: 90s, 24h, 7d, or none; default: the destination's")
	flags.StringVar(&f.m.Delay, "delay", "", "earliest first attempt, from now: 90s, 24h, 7d")
	flags.StringVar(&f.m.Wait, "wait", "", "how long to wait for the first attempt, at most 1m; 0s: do not wait; default: 10s for a call or a database, else 0s")
	flags.IntVar(&f.retries, "max-retries", 0, "retries after the first attempt; 0: without limit; default: the destination's")
	flags.StringVar(&f.m.RetryInterval, "retry-interval", "", "fixed wait between two attempts: 30s, 5m; default: the destination's retries")
	flags.BoolVar(&f.later, "no-attempt", false, "return when it is on disk, without waiting for an attempt")
	flags.StringVar(&f.m.Category, "category", "", "refuse a destination of another category: external-system, cached-db-write, notification")
	originFlags(flags, &f.m.OriginInstance, &f.m.SourceScript, &f.m.ExecutionID, &f.m.ParentExecutionID)
	flags.StringArrayVar(&f.headers, "header", nil, "header NAME=VALUE to send along; may be repeated")
	flags.StringVar(&f.file, "file", "", "file that holds the payload")
	flags.BoolVarP(&f.quiet, "quiet", "q", false, "print the message id only")
	return cmd
}

// originFlags adds the flags that say where a message or notification comes from.
func originFlags(flags *pflag.FlagSet, instance, script, execution, parent *string) {
	flags.StringVar(instance, "instance", "", "which instance of a program it comes from")
	flags.StringVar(script, "script", "", "which script or program part it comes from")
	flags.StringVar(execution, "execution", "", "which run of the script it comes from")
	flags.StringVar(parent, "parent-execution", "", "which run started that run")
}

func (a *app) send(cmd *cobra.Command, g *global, f *sendFlags, given []string) error {
	m := f.m
	m.Destination, m.Endpoint = given[0], given[1]
	if cmd.Flags().Changed("max-retries") {
		m.MaxRetries = &f.retries
	}
	if f.later {
		m.AttemptImmediately = new(bool)
	}
	for _, h := range f.headers {
		name, value, ok := strings.Cut(h, "=")
		if !ok || name == "" {
			return usage(fmt.Errorf("--header %q: must have the form NAME=VALUE", h))
		}
		if m.Headers == nil {
			m.Headers = map[string]string{}
		}
		m.Headers[name] = value
	}
	// The node answers after the wait, so this command must not give up before.
	if wait, p := span.Parse(m.Wait); m.Wait != "" && p == nil {
		g.timeout = max(g.timeout, wait+10*time.Second)
	}
	var err error
	if m.Payload, err = a.payload(f.file, given[2:]); err != nil {
		return err
	}
	return a.ask(cmd, g, func(ctx context.Context, c *client.Client) error {
		sent, err := c.Messages().Send(ctx, m)
		switch {
		case err != nil:
			return err
		case g.json:
			return printJSON(a.stdout, sent)
		case f.quiet:
			_, err = fmt.Fprintln(a.stdout, sent.ID)
		case sent.Duplicate:
			_, err = fmt.Fprintf(a.stdout, "%s was known already; it is %s\n", sent.ID, sent.State)
		default:
			_, err = fmt.Fprintf(a.stdout, "%s accepted; it is %s%s\n", sent.ID, sent.State, said(sent))
		}
		return err
	})
}

// said describes the outcome of the first attempt, if the command waited for it.
func said(sent api.Accepted) string {
	switch {
	case sent.LastError != "":
		return fmt.Sprintf(" (%s: %s)", plain(sent.Outcome), plain(sent.LastError))
	case len(sent.Response) > 0:
		return "; the answer: " + plain(string(sent.Response))
	case sent.ResponseBase64 != "":
		return "; the answer in base64: " + sent.ResponseBase64
	}
	return ""
}

// payload reads JSON from the argument, the file or standard input.
func (a *app) payload(file string, arg []string) (json.RawMessage, error) {
	var text []byte
	from := "the payload"
	switch {
	case file != "" && len(arg) > 0:
		return nil, usage(errors.New("the payload is given twice, as an argument and by --file; keep one"))
	case file != "" || len(arg) > 0 && arg[0] == "-":
		name := "-"
		from = "standard input"
		if file != "" {
			name, from = file, file
		}
		var err error
		if text, err = a.readInput(name); err != nil {
			return nil, err
		}
	case len(arg) > 0:
		text = []byte(arg[0])
	default:
		return nil, nil
	}
	return rawJSON(from, text)
}

// rawJSON checks JSON that a person wrote.
func rawJSON(from string, text []byte) (json.RawMessage, error) {
	text = bytes.TrimSpace(text)
	if !json.Valid(text) {
		var value json.RawMessage
		cause := json.Unmarshal(text, &value)
		return nil, usage(fmt.Errorf(`%s is not JSON: %w; quote a text twice: '"text"'`, from, cause))
	}
	return text, nil
}
