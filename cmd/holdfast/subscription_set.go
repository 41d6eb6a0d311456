package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/holdfast-mq/holdfast/admin/api"
	"github.com/holdfast-mq/holdfast/admin/client"
)

// subscriptionFiles hold parts of a subscription that people keep in files of their own.
type subscriptionFiles struct{ whole, secret, ca, cert, key string }

func (s *subscriptions) set() *cobra.Command {
	var f subscriptionFiles
	cmd := &cobra.Command{
		Use:   "set ID --file FILE",
		Short: "Make or replace a subscription",
		Long: `Make or replace a subscription. The file in YAML or JSON holds the whole of it. You can
edit the output of "show --json" and give it back; if the subscription was changed
meanwhile, it is refused with exit code 4.

The secret of its authorization, certificates and their key may come from files of their
own, which stand for what the whole says of them.`,
		Example: `  holdfast subscriptions set shop --file shop.yaml
  holdfast subscriptions set shop --file shop.yaml --authorization-secret token.txt
  holdfast subscriptions set shop --file shop.yaml --tls-ca ca.pem --tls-cert cert.pem --tls-key key.pem`,
		Args: args(1, 1, "the subscription's id"),
		RunE: func(cmd *cobra.Command, given []string) error {
			spec, err := s.readSubscription(&f)
			if err != nil {
				return err
			}
			return s.ask(cmd, s.global, func(ctx context.Context, node *client.Client) error {
				made, err := node.Subscriptions().Put(ctx, given[0], spec)
				if err != nil {
					return err
				}
				return s.print(&made)
			})
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&f.whole, "file", "-", `file that holds the subscription, in YAML or JSON; "-" for standard input`)
	flags.StringVar(&f.secret, "authorization-secret", "", "file that holds the secret of its authorization")
	flags.StringVar(&f.ca, "tls-ca", "", "file with certificates of authorities besides those of the system, in PEM")
	flags.StringVar(&f.cert, "tls-cert", "", "file with the node's certificate for this subscriber, in PEM")
	flags.StringVar(&f.key, "tls-key", "", "file with the key of that certificate, in PEM")
	return cmd
}

func (s *subscriptions) readSubscription(f *subscriptionFiles) (spec api.SubscriptionSpec, err error) {
	data, err := s.readObject(f.whole)
	if err == nil {
		err = decodeStrict(f.whole, data, &spec)
	}
	if err != nil {
		return spec, err
	}
	part := func(file string, set func(text string)) {
		if file == "" || err != nil {
			return
		}
		var text []byte
		if text, err = s.readInput(file); err == nil && len(text) == 0 {
			err = usage(fmt.Errorf("%s: is empty", file))
		}
		set(string(text))
	}
	if f.secret != "" && spec.Authorization == nil {
		return spec, usage(errors.New("--authorization-secret needs an authorization in the file: its kind and what belongs to that"))
	}
	if f.ca+f.cert+f.key != "" && spec.TLS == nil {
		spec.TLS = &api.SubscriberTLS{}
	}
	part(f.secret, func(text string) { spec.Authorization.Secret = api.KeptSecret{Value: strings.TrimRight(text, "\r\n")} })
	part(f.ca, func(text string) { spec.TLS.CA = text })
	part(f.cert, func(text string) { spec.TLS.Cert = text })
	part(f.key, func(text string) { spec.TLS.Key = &api.KeptSecret{Value: text} })
	return spec, err
}
