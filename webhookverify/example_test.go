package webhookverify_test

import (
	"fmt"
	"log/slog"
	"net/http"

	"github.com/holdfast-mq/holdfast/webhookverify"
)

// While a secret is being replaced, both are good.
func ExampleVerifier_Handler() {
	v, err := webhookverify.New(webhookverify.Config{
		Form:    webhookverify.StandardWebhooks,
		Secrets: []string{"whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "whsec_bm90LWEtcmVhbC1zZWNyZXQtb2YtYW55Ym9keQ=="},
		Logger:  slog.Default(),
	})
	if err != nil {
		panic(err)
	}
	mux := http.NewServeMux()
	mux.Handle("POST /hooks", v.Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		d, _ := webhookverify.From(r.Context())
		fmt.Printf("%s: %s\n", d.ID, d.Body)
		w.WriteHeader(http.StatusNoContent)
	})))
}
