package webhookinbox_test

import (
	"context"
	"net/http"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/sqlite"
	"github.com/holdfast-mq/holdfast/webhookinbox"
	"github.com/holdfast-mq/holdfast/webhookverify"
)

// What the handler does with the transaction is committed with the id of the webhook. A repeat is
// answered with 204 and does nothing.
func ExampleHandler() {
	db, err := sqlite.Open(context.Background(), "shop.db", sqlite.Options{})
	if err != nil {
		panic(err)
	}
	v, err := webhookverify.New(webhookverify.Config{Form: webhookverify.Stripe, Secrets: []string{"whsec_…"}})
	if err != nil {
		panic(err)
	}
	hooks, err := webhookinbox.Handler(webhookinbox.Config[*sqlite.Tx]{
		Verifier: v, Inbox: db.Inbox(), Source: "stripe",
		Handle: func(ctx context.Context, tx *sqlite.Tx, m holdfast.Message) ([]byte, error) {
			_, err := tx.ExecContext(ctx, "INSERT INTO payments (event) VALUES (?)", m.Payload)
			return nil, err
		},
	})
	if err != nil {
		panic(err)
	}
	http.Handle("POST /hooks/stripe", hooks)
}
